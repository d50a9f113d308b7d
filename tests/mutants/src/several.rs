//! Several things at once: tests wait most of their time.

use std::{sync::Mutex, thread};

const AT_ONCE: usize = 4;

/// Does something with each, in their order.
pub(crate) fn each<T: Send>(all: Vec<T>, deed: impl Fn(T) + Sync) {
    let queue = Mutex::new(all.into_iter());
    let next = || queue.lock().expect("no thread panics with it").next();
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(one) = next() {
                    deed(one);
                }
            });
        }
    });
}
