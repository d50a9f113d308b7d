//! What these components share: the level of the contract that they are built against.

/// The custom section that has it.
#[used]
#[unsafe(link_section = "orangery:contract")]
static CONTRACT_LEVEL: [u8; 1] = *b"1";
