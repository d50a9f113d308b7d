//! Charts as releases of Helm, beside the stock command line.

mod charts;
mod helm_cli;
mod left_over;
mod releases;
mod round_trips;
mod unreachable_target;
