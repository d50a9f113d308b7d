//! Carries proposals out: inventory, stages, gates, pruning, deletion. Knows none of our kinds.
