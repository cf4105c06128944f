"""The first proposal of each row for adaptive importance sampling."""

from roundtrip.density.starts.bank import Bank, make_bank, unusual_rows
from roundtrip.density.starts.first import FirstProposal, first_proposal, most_start_evaluations

__all__ = [
    "Bank",
    "FirstProposal",
    "first_proposal",
    "make_bank",
    "most_start_evaluations",
    "unusual_rows",
]
