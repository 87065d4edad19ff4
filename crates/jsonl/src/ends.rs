//! Writes where rows end into memory that JavaScript reads as a `Float64Array`. Runs in tasks and on the JS thread.

use std::slice::ChunksExactMut;

use memchr::memchr_iter;

/// Fills memory with the ends of rows: one native-endian double for each. Ends for which there is no room are dropped.
pub struct EndsWriter<'a> {
    slots: ChunksExactMut<'a, u8>,
    count: usize,
}

impl<'a> EndsWriter<'a> {
    #[must_use]
    pub fn new(memory: &'a mut [u8]) -> Self {
        Self { slots: memory.chunks_exact_mut(size_of::<f64>()), count: 0 }
    }

    pub fn push(&mut self, end: usize) {
        let Some(slot) = self.slots.next() else { return };
        slot.copy_from_slice(&(end as f64).to_ne_bytes());
        self.count += 1;
    }

    /// Returns how many ends were written.
    #[must_use]
    pub fn count(&self) -> usize {
        self.count
    }
}

/// Writes the offset behind each newline of `rows`. Returns how many offsets were written.
pub fn write_ends(rows: &[u8], memory: &mut [u8]) -> usize {
    let mut ends = EndsWriter::new(memory);
    memchr_iter(b'\n', rows).for_each(|at| ends.push(at + 1));
    ends.count()
}

#[cfg(test)]
mod tests {
    use super::write_ends;

    fn ends(rows: &str, room: usize) -> Vec<f64> {
        let mut memory = vec![0; room * 8 + 3];
        let count = write_ends(rows.as_bytes(), &mut memory);
        let doubles = memory.chunks_exact(8).filter_map(|slot| slot.try_into().ok());
        doubles.map(f64::from_ne_bytes).take(count).collect()
    }

    #[test]
    fn each_end_is_the_offset_behind_its_newline() {
        assert_eq!(ends("{}\n[1]\n\n", 3), [3.0, 7.0, 8.0]);
        assert_eq!(ends("{}\n[1]", 3), [3.0]);
        assert_eq!(ends("", 3), [0.0; 0]);
    }

    #[test]
    fn ends_without_room_are_dropped() {
        assert_eq!(ends("1\n2\n3\n", 2), [2.0, 4.0]);
        assert_eq!(ends("1\n", 0), [0.0; 0]);
    }
}
