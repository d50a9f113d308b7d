//! What a deployer or template author needs: one trait, one macro.
