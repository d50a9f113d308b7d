//! The components that ship with the host.
