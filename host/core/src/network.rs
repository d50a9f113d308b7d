//! Networks: which addresses nobody connects to, which ones are never on the internet, and which of these may be connected to
//! (C-95, C-101).

mod allowed;
mod prefix;
mod reserved;

pub use self::{
    allowed::{AllowedNetworks, NamedServer, NetworkRule, RefusedAddress},
    prefix::{Network, NetworkFault},
    reserved::{denied, reserved},
};
