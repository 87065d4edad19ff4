//! Blocks of memory that are used again and again.
//!
//! JS threads and tasks acquire blocks and drop them, on any thread.

use std::mem;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::OutOfMemory;
use crate::region::Region;

/// The size of the smallest block.
const MIN_SIZE: usize = 64 << 10;
/// The most times that a block may be larger than a request it serves. Few large warm blocks then serve all requests.
const MAX_SLACK: usize = 8;
/// The largest block that [`Recycler::prewarm`] makes: a response body of 31 MB fits.
const PREWARM_SIZE: usize = 32 << 20;

/// Keeps dropped blocks up to a bound. The least recently used leave first.
pub struct Recycler {
    stock: Mutex<Stock>,
}

struct Stock {
    /// Regions in the order in which they were dropped.
    idle: Vec<IdleRegion>,
    idle_size: usize,
    max_idle: usize,
}

struct IdleRegion {
    region: Region,
    since: Instant,
}

/// Memory of a recycler, which takes it back when it is dropped. All `len` bytes may be read and written.
pub struct Block {
    /// `None` only during `drop`.
    region: Option<Region>,
    recycler: &'static Recycler,
}

impl Recycler {
    /// Returns a recycler that keeps at most `max_idle` bytes.
    #[must_use]
    pub const fn new(max_idle: usize) -> Self {
        Self { stock: Mutex::new(Stock { idle: Vec::new(), idle_size: 0, max_idle }) }
    }

    /// Returns a block of at least `size` bytes: an idle one if one fits, else a new one.
    ///
    /// # Errors
    /// Fails where the system has no memory left.
    pub fn acquire(&'static self, size: usize) -> Result<Block, OutOfMemory> {
        let rounded = round(size).ok_or(OutOfMemory { size })?;
        let idle = self.lock().take(rounded);
        let region = match idle {
            Some(region) => region,
            None => Region::new(rounded)?,
        };
        Ok(Block { region: Some(region), recycler: self })
    }

    /// Makes about `size` bytes idle and warm.
    ///
    /// # Errors
    /// Fails where the system has no memory left. The blocks made so far stay warm.
    pub fn prewarm(&'static self, size: usize) -> Result<(), OutOfMemory> {
        let mut blocks = Vec::new();
        let mut ready = 0;
        while ready < size {
            let mut block = self.acquire((size - ready).min(PREWARM_SIZE))?;
            block.touch();
            ready += block.len();
            blocks.push(block);
        }
        // Drops the last and smallest block first: where rounding exceeds the bound, the first to be dropped leaves.
        while let Some(block) = blocks.pop() {
            drop(block);
        }
        Ok(())
    }

    /// Returns the bytes of idle blocks.
    pub fn idle_size(&self) -> usize {
        self.lock().idle_size
    }

    /// Returns the bound of [`Self::idle_size`].
    pub fn max_idle(&self) -> usize {
        self.lock().max_idle
    }

    /// Sets the bound of [`Self::idle_size`]. Blocks that exceed it leave at once.
    pub fn set_max_idle(&self, bytes: usize) {
        let mut stock = self.lock();
        stock.max_idle = bytes;
        let surplus = stock.make_room(0);
        drop(stock);
        drop(surplus);
    }

    /// Returns blocks that have been idle for `idle_for` to the system. Returns their bytes.
    pub fn release(&self, idle_for: Duration) -> usize {
        let mut stock = self.lock();
        let now = Instant::now();
        let (surplus, staying): (Vec<_>, Vec<_>) = mem::take(&mut stock.idle)
            .into_iter()
            .partition(|idle| idle_for <= now.duration_since(idle.since));
        stock.idle = staying;
        let size = surplus.iter().map(|idle| idle.region.len()).sum();
        stock.idle_size -= size;
        drop(stock);
        drop(surplus);
        size
    }

    fn recycle(&self, region: Region) {
        let mut stock = self.lock();
        if stock.max_idle < region.len() {
            drop(stock);
            drop(region);
            return;
        }
        let surplus = stock.make_room(region.len());
        stock.idle_size += region.len();
        stock.idle.push(IdleRegion { region, since: Instant::now() });
        drop(stock);
        // Drops after the lock: the system takes a millisecond for 32 MB.
        drop(surplus);
    }

    fn lock(&self) -> MutexGuard<'_, Stock> {
        // No code under this lock can panic between two changes, so a poisoned stock is valid.
        self.stock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stock {
    /// Removes and returns the smallest idle region that fits; among equal sizes the one dropped last.
    fn take(&mut self, size: usize) -> Option<Region> {
        let most = size.saturating_mul(MAX_SLACK);
        let fits = |idle: &IdleRegion| size <= idle.region.len() && idle.region.len() <= most;
        let (index, _) = self
            .idle
            .iter()
            .enumerate()
            .rev()
            .filter(|(_, idle)| fits(idle))
            .min_by_key(|(_, idle)| idle.region.len())?;
        let idle = self.idle.remove(index);
        self.idle_size -= idle.region.len();
        Some(idle.region)
    }

    /// Removes and returns the oldest regions until `size` more bytes fit the bound.
    fn make_room(&mut self, size: usize) -> Vec<IdleRegion> {
        let mut excess = (self.idle_size + size).saturating_sub(self.max_idle);
        let mut count = 0;
        for idle in &self.idle {
            if excess == 0 {
                break;
            }
            excess = excess.saturating_sub(idle.region.len());
            self.idle_size -= idle.region.len();
            count += 1;
        }
        self.idle.drain(..count).collect()
    }
}

/// Rounds a size up by at most a quarter, so that requests of similar sizes share blocks.
fn round(size: usize) -> Option<usize> {
    let size = size.max(MIN_SIZE);
    let step = 1 << (size.ilog2() - 2);
    size.checked_next_multiple_of(step)
}

impl Block {
    /// Writes to every page, so that the system backs it.
    fn touch(&mut self) {
        const PAGE: usize = 4096;
        for byte in self.iter_mut().step_by(PAGE) {
            *byte = 0;
        }
    }
}

impl Deref for Block {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.region.as_ref().map_or(&[], Region::as_slice)
    }
}

impl DerefMut for Block {
    fn deref_mut(&mut self) -> &mut [u8] {
        self.region.as_mut().map_or(&mut [], Region::as_mut_slice)
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if let Some(region) = self.region.take() {
            self.recycler.recycle(region);
        }
    }
}
