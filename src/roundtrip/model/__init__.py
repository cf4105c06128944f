"""The Roundtrip model: networks, prior and observation model."""
