"""Numbers stated in the paper, shown beside ours."""

TABLE_1 = {
    "KDE": {"AReM": 6.26, "CASP": 20.47, "HEPMASS": -25.46, "BANK": 15.84, "YPMSD": 247.03},
    "MADE": {"AReM": 6.00, "CASP": 21.82, "HEPMASS": -15.15, "BANK": 14.97, "YPMSD": 273.20},
    "RealNVP": {"AReM": 9.52, "CASP": 26.81, "HEPMASS": -18.71, "BANK": 26.33, "YPMSD": 287.74},
    "MAF": {"AReM": 9.49, "CASP": 27.61, "HEPMASS": -17.39, "BANK": 20.09, "YPMSD": 290.76},
    "Roundtrip (paper)": {
        "AReM": 11.74,
        "CASP": 28.38,
        "HEPMASS": -4.18,
        "BANK": 35.16,
        "YPMSD": 297.98,
    },
}
"""Average test log-likelihood, in nats. The Roundtrip row contains the bias of its estimator."""

TABLE_1_DEVIATIONS = {
    "KDE": {"AReM": 0.07, "CASP": 0.10, "HEPMASS": 0.03, "BANK": 0.12, "YPMSD": 0.61},
    "MADE": {"AReM": 0.11, "CASP": 0.23, "HEPMASS": 0.02, "BANK": 0.53, "YPMSD": 0.35},
    "RealNVP": {"AReM": 0.18, "CASP": 0.15, "HEPMASS": 0.02, "BANK": 0.22, "YPMSD": 0.34},
    "MAF": {"AReM": 0.17, "CASP": 0.13, "HEPMASS": 0.02, "BANK": 0.20, "YPMSD": 0.33},
    "Roundtrip (paper)": {
        "AReM": 0.04,
        "CASP": 0.08,
        "HEPMASS": 0.02,
        "BANK": 0.14,
        "YPMSD": 0.52,
    },
}
"""Two standard deviations, as the paper calls them, of the averages of table 1."""

SPEARMAN_AT_10 = {"Roundtrip (paper)": 0.829, "RealNVP": 0.669, "MAF": 0.595, "KDE": 0.14}
"""Rank correlation with the true density in 10 dimensions, from the text on Fig. S2."""

TABLE_2 = {
    "OC-SVM": {"Shuttle": 0.953, "Mammography": 0.037, "ForestCover": 0.127},
    "Isolation Forest": {"Shuttle": 0.956, "Mammography": 0.482, "ForestCover": 0.058},
    "RealNVP": {"Shuttle": 0.784, "Mammography": 0.474, "ForestCover": 0.054},
    "MAF": {"Shuttle": 0.929, "Mammography": 0.407, "ForestCover": 0.046},
    "Roundtrip (paper)": {"Shuttle": 0.973, "Mammography": 0.482, "ForestCover": 0.177},
}
"""Precision at k of outlier detection."""
