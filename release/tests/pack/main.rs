//! Packing, with a small stand-in for what is built.

#[cfg(test)]
mod cases;
#[cfg(test)]
mod standin;
