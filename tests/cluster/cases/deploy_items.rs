//! Deploy items that no component of the operator works on.

mod external_deployers;
