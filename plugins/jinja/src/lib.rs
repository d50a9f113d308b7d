//! The Jinja template engine.
