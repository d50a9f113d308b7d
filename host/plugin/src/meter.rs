//! What one call has spent of its budget.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use wasmtime::ResourceLimiter;

use crate::{
    budget::{Budget, BudgetLimit},
    epochs::{Epochs, TICK_MILLISECONDS},
    error::{CallStop, SharedResource},
};

/// Where a call's linear memory is taken from.
pub(crate) trait MemorySource: Send + Sync {
    /// Takes bytes; whether there were so many.
    fn take(&self, bytes: usize) -> bool;

    /// Gives bytes back.
    fn give(&self, bytes: usize);
}

/// What a call has in its store that is metered.
pub(crate) trait Metered {
    /// What the call has spent.
    fn meter(&mut self) -> &mut Meter;
}

/// The memory that all calls of the process share.
#[derive(Debug)]
pub(crate) struct SharedMemory {
    used: AtomicUsize,
    total: usize,
}

impl SharedMemory {
    pub(crate) fn new(total: usize) -> Self {
        Self { used: AtomicUsize::new(0), total }
    }

    /// Bytes that there are.
    #[cfg(test)]
    pub(crate) fn total(&self) -> usize {
        self.total
    }

    /// Bytes in use.
    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }
}

impl MemorySource for SharedMemory {
    fn take(&self, bytes: usize) -> bool {
        let before = self.used.fetch_add(bytes, Ordering::Relaxed);
        if before.saturating_add(bytes) <= self.total {
            return true;
        }
        self.give(bytes);
        false
    }

    fn give(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Bytes of linear memory that are lent at once.
pub(crate) const LENT_MEMORY: usize = 4 << 20;

/// Counts against a [`Budget`].
pub(crate) struct Meter {
    budget: Budget,
    shared: Arc<dyn MemorySource>,
    epochs: Arc<Epochs>,
    ticks: u64,
    /// The guest waited since the last tick, so the next one is not its own.
    waited: bool,
    memory: usize,
    /// The last growth that was allowed, to be taken back where it fails after all.
    growth: usize,
    table_elements: usize,
    host_calls: u64,
    host_call_bytes: u64,
}

impl Meter {
    pub(crate) fn new(budget: Budget, shared: Arc<dyn MemorySource>, epochs: Arc<Epochs>) -> Self {
        Self {
            budget,
            shared,
            epochs,
            ticks: 0,
            waited: false,
            memory: 0,
            growth: 0,
            table_elements: 0,
            host_calls: 0,
            host_call_bytes: 0,
        }
    }

    /// One tick passed while the guest ran.
    pub(crate) fn tick(&mut self) -> Result<(), CallStop> {
        if std::mem::take(&mut self.waited) {
            return Ok(());
        }
        self.ticks += 1;
        if self.ticks.saturating_mul(TICK_MILLISECONDS) > self.budget.cpu_milliseconds {
            return Err(CallStop::Limit(BudgetLimit::Cpu));
        }
        Ok(())
    }

    /// The guest makes a host call with this many bytes of arguments.
    pub(crate) fn host_call(&mut self, bytes: usize) -> Result<(), CallStop> {
        self.host_calls += 1;
        if self.host_calls > self.budget.host_calls {
            return Err(CallStop::Limit(BudgetLimit::HostCalls));
        }
        self.carry(bytes)
    }

    /// A host call carries this many bytes.
    pub(crate) fn carry(&mut self, bytes: usize) -> Result<(), CallStop> {
        self.host_call_bytes = self.host_call_bytes.saturating_add(bytes as u64);
        if self.host_call_bytes > self.budget.host_call_bytes {
            return Err(CallStop::Limit(BudgetLimit::HostCallBytes));
        }
        Ok(())
    }

    /// Lends linear memory to the process that the call runs in, which counts what it uses. It comes back when the call ends.
    pub(crate) fn lend(&mut self, bytes: usize) -> Result<(), CallStop> {
        // What is lent is a multiple of a step, and the last step need not be used up.
        let most = ((self.budget.memory_mib << 20) as usize).saturating_add(LENT_MEMORY);
        if self.memory.saturating_add(bytes) > most {
            return Err(CallStop::Limit(BudgetLimit::Memory));
        }
        if !self.shared.take(bytes) {
            return Err(CallStop::Busy(SharedResource::Memory));
        }
        self.memory += bytes;
        Ok(())
    }

    /// Bytes of linear memory that it has.
    pub(crate) fn memory(&self) -> usize {
        self.memory
    }

    /// Computes for the guest, on its processor time: what ticks meanwhile is its own.
    pub(crate) fn compute<T>(&mut self, work: impl FnOnce() -> T) -> Result<T, CallStop> {
        let before = self.epochs.passed();
        let answer = work();
        // The guest counts one of them itself, when it goes on.
        for _ in 1..self.epochs.passed().saturating_sub(before) {
            self.tick()?;
        }
        Ok(answer)
    }

    /// Waits for the host. A tick that passes meanwhile is not counted as the guest's.
    pub(crate) async fn wait<T>(&mut self, port: impl Future<Output = T>) -> T {
        let before = self.epochs.passed();
        let answer = port.await;
        self.waited |= self.epochs.passed() != before;
        answer
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.shared.give(self.memory);
    }
}

impl ResourceLimiter for Meter {
    fn memory_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        self.growth = 0;
        if maximum.is_some_and(|maximum| desired > maximum) {
            return Ok(false);
        }
        let growth = desired.saturating_sub(current);
        let sum = self.memory.saturating_add(growth);
        if sum as u64 > self.budget.memory_mib << 20 {
            return Err(CallStop::Limit(BudgetLimit::Memory).into());
        }
        if !self.shared.take(growth) {
            return Err(CallStop::Busy(SharedResource::Memory).into());
        }
        self.memory = sum;
        self.growth = growth;
        Ok(true)
    }

    fn memory_grow_failed(&mut self, _error: wasmtime::Error) -> wasmtime::Result<()> {
        let growth = std::mem::take(&mut self.growth);
        self.memory -= growth;
        self.shared.give(growth);
        Ok(())
    }

    fn table_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> wasmtime::Result<bool> {
        if maximum.is_some_and(|maximum| desired > maximum) {
            return Ok(false);
        }
        self.table_elements = self.table_elements.saturating_add(desired.saturating_sub(current));
        if self.table_elements as u64 > self.budget.table_elements {
            return Err(CallStop::Limit(BudgetLimit::TableElements).into());
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meter(budget: Budget, total: usize) -> Meter {
        meter_of(budget, &Arc::new(SharedMemory::new(total)))
    }

    fn meter_of(budget: Budget, shared: &Arc<SharedMemory>) -> Meter {
        Meter::new(budget, shared.clone(), Arc::new(Epochs::default()))
    }

    fn stop<T: std::fmt::Debug>(result: wasmtime::Result<T>) -> CallStop {
        *result.unwrap_err().downcast_ref::<CallStop>().unwrap()
    }

    #[test]
    fn memories_are_summed() {
        let mut meter = meter(Budget { memory_mib: 2, ..Budget::default() }, usize::MAX);
        assert!(meter.memory_growing(0, 1 << 20, None).unwrap());
        assert!(meter.memory_growing(0, 1 << 20, None).unwrap());
        assert_eq!(stop(meter.memory_growing(1 << 20, (1 << 20) + 1, None)), CallStop::Limit(BudgetLimit::Memory));
    }

    #[test]
    fn a_growth_that_fails_is_taken_back() {
        let shared = Arc::new(SharedMemory::new(usize::MAX));
        let mut meter = meter_of(Budget { memory_mib: 1, ..Budget::default() }, &shared);
        assert!(meter.memory_growing(0, 1 << 20, None).unwrap());
        meter.memory_grow_failed(wasmtime::Error::msg("no memory")).unwrap();
        assert!(meter.memory_growing(0, 1 << 20, None).unwrap());
        assert!(!meter.memory_growing(1 << 20, 2 << 20, Some(1 << 20)).unwrap());
        meter.memory_grow_failed(wasmtime::Error::msg("maximum")).unwrap();
        assert_eq!(shared.used(), 1 << 20);
    }

    #[test]
    fn the_process_has_one_share_for_all_calls_and_gets_it_back() {
        let shared = Arc::new(SharedMemory::new(100));
        let epochs = Arc::new(Epochs::default());
        let mut first = Meter::new(Budget::default(), shared.clone(), epochs.clone());
        let mut second = Meter::new(Budget::default(), shared.clone(), epochs);
        assert!(first.memory_growing(0, 60, None).unwrap());
        assert_eq!(stop(second.memory_growing(0, 60, None)), CallStop::Busy(SharedResource::Memory));
        drop(first);
        assert!(second.memory_growing(0, 60, None).unwrap());
        drop(second);
        assert_eq!(shared.used(), 0);
    }

    #[test]
    fn c_70_memory_that_is_lent_is_of_the_share_of_all_and_of_the_budget_and_comes_back() {
        let shared = Arc::new(SharedMemory::new(10 << 20));
        let mut small = meter_of(Budget { memory_mib: 3, ..Budget::default() }, &shared);
        assert_eq!(small.lend(LENT_MEMORY), Ok(()), "less than one step is one step");
        assert_eq!(small.lend(LENT_MEMORY), Err(CallStop::Limit(BudgetLimit::Memory)));
        let mut large = meter_of(Budget::default(), &shared);
        assert_eq!(large.lend(LENT_MEMORY), Ok(()));
        assert_eq!(large.lend(LENT_MEMORY), Err(CallStop::Busy(SharedResource::Memory)));
        drop((small, large));
        assert_eq!(shared.used(), 0);
    }

    #[test]
    fn tables_are_summed() {
        let mut meter = meter(Budget { table_elements: 10, ..Budget::default() }, 0);
        assert!(meter.table_growing(0, 5, None).unwrap() && meter.table_growing(0, 5, None).unwrap());
        assert_eq!(stop(meter.table_growing(5, 6, None)), CallStop::Limit(BudgetLimit::TableElements));
    }

    #[test]
    fn host_calls_and_their_bytes_are_counted() {
        let mut calls = meter(Budget { host_calls: 2, ..Budget::default() }, 0);
        assert_eq!([calls.host_call(1), calls.host_call(1)], [Ok(()), Ok(())]);
        assert_eq!(calls.host_call(1), Err(CallStop::Limit(BudgetLimit::HostCalls)));
        let mut bytes = meter(Budget { host_call_bytes: 3, ..Budget::default() }, 0);
        assert_eq!([bytes.host_call(2), bytes.carry(1)], [Ok(()), Ok(())]);
        assert_eq!(bytes.carry(1), Err(CallStop::Limit(BudgetLimit::HostCallBytes)));
        assert_eq!(bytes.carry(usize::MAX), Err(CallStop::Limit(BudgetLimit::HostCallBytes)));
    }

    #[test]
    fn ticks_are_processor_time_and_a_tick_of_waiting_is_not() {
        let mut meter = meter(Budget { cpu_milliseconds: 20, ..Budget::default() }, 0);
        assert_eq!([meter.tick(), meter.tick()], [Ok(()), Ok(())]);
        let epochs = meter.epochs.clone();
        futures::executor::block_on(meter.wait(async { epochs.advance() }));
        assert_eq!(meter.tick(), Ok(()));
        assert_eq!(meter.tick(), Err(CallStop::Limit(BudgetLimit::Cpu)));
    }

    #[test]
    fn c_394_what_is_computed_for_a_guest_is_on_its_processor_time() {
        let mut meter = meter(Budget { cpu_milliseconds: 20, ..Budget::default() }, 0);
        let epochs = meter.epochs.clone();
        let ticks = |number: u32| (0..number).for_each(|_| epochs.advance());
        assert_eq!([meter.compute(|| ticks(0)), meter.compute(|| ticks(1))], [Ok(()); 2], "the guest counts it");
        assert_eq!(meter.compute(|| ticks(3)), Ok(()));
        assert_eq!(meter.compute(|| ticks(2)), Err(CallStop::Limit(BudgetLimit::Cpu)));
    }
}
