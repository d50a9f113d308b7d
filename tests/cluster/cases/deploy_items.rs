//! Deploy items that no component of the operator works on, and what is known of the objects of those that one does.

mod addresses;
mod external_deployers;
mod identity;
