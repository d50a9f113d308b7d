//! Installation, Execution, DeployItem and Context on the job protocol.
