//! The custom resources as they are on the wire, quirks included.
