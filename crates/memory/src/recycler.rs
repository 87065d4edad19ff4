use std::mem;
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::OutOfMemory;
use crate::region::Region;

/// The smallest block. What needs less shares one of these.
const MIN_SIZE: usize = 64 << 10;
/// An idle block serves requests down to an eighth of its size, so that a few large warm ones are of use to all.
const MAX_SLACK: usize = 8;
/// What [`Recycler::prewarm`] makes at once: a response body of 31 MB fits.
const PREWARM_SIZE: usize = 32 << 20;

/// Keeps dropped blocks, the least recently used leaving first when there are too many.
pub struct Recycler {
    stock: Mutex<Stock>,
}

struct Stock {
    /// In the order they came back.
    idle: Vec<Idle>,
    idle_size: usize,
    max_idle: usize,
}

struct Idle {
    region: Region,
    since: Instant,
}

/// Memory on loan; all of its `len` bytes may be read and written.
pub struct Block {
    /// `None` only while it is being dropped.
    region: Option<Region>,
    recycler: &'static Recycler,
}

impl Recycler {
    #[must_use]
    pub const fn new(max_idle: usize) -> Self {
        Self { stock: Mutex::new(Stock { idle: Vec::new(), idle_size: 0, max_idle }) }
    }

    /// A block of at least `size` bytes: an idle one if one fits, else a new one.
    ///
    /// # Errors
    /// Where the system has no memory left.
    pub fn acquire(&'static self, size: usize) -> Result<Block, OutOfMemory> {
        let rounded = round(size).ok_or(OutOfMemory { size })?;
        let idle = self.lock().take(rounded);
        let region = match idle {
            Some(region) => region,
            None => Region::new(rounded)?,
        };
        Ok(Block { region: Some(region), recycler: self })
    }

    /// Sees to it that about `size` bytes are idle and warm.
    ///
    /// # Errors
    /// Where the system has no memory left; what could be had is warm.
    pub fn prewarm(&'static self, size: usize) -> Result<(), OutOfMemory> {
        let mut blocks = Vec::new();
        let mut ready = 0;
        while ready < size {
            let mut block = self.acquire((size - ready).min(PREWARM_SIZE))?;
            block.touch();
            ready += block.len();
            blocks.push(block);
        }
        // Where rounding made them more than may be kept, the last and smallest are the ones to leave.
        while let Some(block) = blocks.pop() {
            drop(block);
        }
        Ok(())
    }

    /// Bytes that wait to be used again.
    pub fn idle_size(&self) -> usize {
        self.lock().idle_size
    }

    pub fn max_idle(&self) -> usize {
        self.lock().max_idle
    }

    /// The bound of [`Self::idle_size`]. What exceeds it leaves at once.
    pub fn set_max_idle(&self, bytes: usize) {
        let mut stock = self.lock();
        stock.max_idle = bytes;
        let surplus = stock.make_room(0);
        drop(stock);
        drop(surplus);
    }

    /// Gives back to the system what has been idle for so long, and tells how many bytes that was.
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
        stock.idle.push(Idle { region, since: Instant::now() });
        drop(stock);
        // Outside the lock: returning 32 MB to the system takes a millisecond.
        drop(surplus);
    }

    fn lock(&self) -> MutexGuard<'_, Stock> {
        // No code that runs under this lock leaves the stock half changed, so a panic there spoils nothing.
        self.stock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stock {
    /// The smallest idle region that fits, of equal ones the warmest.
    fn take(&mut self, size: usize) -> Option<Region> {
        let most = size.saturating_mul(MAX_SLACK);
        let fits = |idle: &Idle| size <= idle.region.len() && idle.region.len() <= most;
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

    /// Takes the oldest off until `size` more bytes may be kept.
    fn make_room(&mut self, size: usize) -> Vec<Idle> {
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

/// Up to a quarter more than asked for, so that requests of nearly the same size share blocks.
fn round(size: usize) -> Option<usize> {
    let size = size.max(MIN_SIZE);
    let step = 1 << (size.ilog2() - 2);
    size.checked_next_multiple_of(step)
}

impl Block {
    /// Makes every page present.
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
