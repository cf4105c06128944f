import pytest
import torch

from roundtrip.data import Rows


@pytest.fixture(name="rows")
def five_rows():
    return Rows(torch.arange(10.0).view(5, 2), torch.arange(5.0)[:, None])


def test_features_and_context_stay_together(rows):
    for chosen in (
        torch.tensor([3, 1]),
        torch.tensor([False, True, False, True, False]),
        slice(1, 4),
    ):
        some = rows[chosen]
        torch.testing.assert_close(some.x, rows.x[chosen])
        torch.testing.assert_close(some.context, rows.context[chosen])
        torch.testing.assert_close(some.x[:, 0], 2 * some.context[:, 0])


def test_blocks_are_the_rows_in_their_order(rows):
    blocks = list(rows.split(2))
    assert [len(block) for block in blocks] == [2, 2, 1]
    torch.testing.assert_close(torch.cat([block.x for block in blocks]), rows.x)
    torch.testing.assert_close(torch.cat([block.context for block in blocks]), rows.context)


def test_without_a_context_there_are_no_columns_of_it():
    rows = Rows.without_context(torch.zeros(4, 3))
    assert (len(rows), rows.features, rows.context_dim) == (4, 3, 0)
    assert rows.context.shape == (4, 0)
    assert rows[:2].context.shape == (2, 0)
    assert [block.context.shape for block in rows.split(3)] == [(3, 0), (1, 0)]


def test_precision_changes_for_both(rows):
    precise = rows.to(torch.float64)
    assert precise.x.dtype == precise.context.dtype == torch.float64
    assert rows.x.dtype == torch.float32
    assert precise.device == rows.device


def test_one_context_for_all(rows):
    given = rows.given(torch.tensor([7.0, 8.0], dtype=torch.float64))
    assert given.context.tolist() == [[7.0, 8.0]] * 5
    assert given.context.dtype == rows.x.dtype
    assert given.x is rows.x


def test_rows_do_not_change(rows):
    with pytest.raises(AttributeError):
        rows.x = torch.zeros(5, 2)
