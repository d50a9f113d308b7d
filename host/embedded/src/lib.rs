//! A Kubernetes API server in one process. Knows none of our kinds.
