//! Makes everything and joins it.
