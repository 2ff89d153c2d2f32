"""USD: rigid bodies and joints of UsdPhysics, read through OpenUSD (extra `usd`)."""
