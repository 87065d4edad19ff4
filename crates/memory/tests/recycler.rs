//! Checks which blocks a recycler keeps, hands out and returns to the system.

use std::thread;
use std::time::Duration;

use offloop_memory::{Recycler, prefer_huge_pages, trim};

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

fn recycler(max_idle: usize) -> &'static Recycler {
    Box::leak(Box::new(Recycler::new(max_idle)))
}

#[test]
fn a_dropped_block_is_handed_out_again() {
    let recycler = recycler(8 * MIB);
    let mut block = recycler.acquire(MIB).unwrap();
    let start = block.as_ptr();
    block.fill(7);
    drop(block);
    let block = recycler.acquire(MIB - 5).unwrap();
    assert_eq!(block.as_ptr(), start);
    assert_eq!(recycler.idle_size(), 0);
}

#[test]
fn a_new_block_is_zeroed_and_at_least_as_large_as_asked() {
    let recycler = recycler(0);
    for size in [0, 1, 64 * KIB, 64 * KIB + 1, 5 * MIB + 3] {
        let block = recycler.acquire(size).unwrap();
        assert!(size <= block.len());
        assert!(block.len() <= (size + size / 4).max(64 * KIB));
        assert!(block.iter().all(|&byte| byte == 0));
    }
}

#[test]
fn two_blocks_never_share_memory() {
    let recycler = recycler(64 * MIB);
    drop(recycler.acquire(MIB).unwrap());
    let mut blocks: Vec<_> = (0..8).map(|_| recycler.acquire(MIB).unwrap()).collect();
    for (index, block) in (0..).zip(&mut blocks) {
        block.fill(index);
    }
    for (index, block) in (0..).zip(&blocks) {
        assert!(block.iter().all(|&byte| byte == index));
    }
}

#[test]
fn the_smallest_block_that_fits_serves_and_a_much_larger_one_does_not() {
    let recycler = recycler(64 * MIB);
    let (large, small) = (recycler.acquire(16 * MIB).unwrap(), recycler.acquire(4 * MIB).unwrap());
    drop((small, large));
    assert_eq!(recycler.acquire(3 * MIB).unwrap().len(), 4 * MIB);
    assert!(recycler.acquire(64 * KIB).unwrap().len() < MIB);
}

#[test]
fn what_is_idle_stays_within_the_bound_and_the_oldest_leaves_first() {
    let recycler = recycler(3 * MIB);
    let blocks: Vec<_> = (0..5).map(|_| recycler.acquire(MIB).unwrap()).collect();
    let latest = blocks.last().unwrap().as_ptr();
    drop(blocks);
    assert_eq!(recycler.idle_size(), 3 * MIB);
    assert_eq!(recycler.acquire(MIB).unwrap().as_ptr(), latest);
    drop(recycler.acquire(16 * MIB).unwrap());
    assert_eq!(recycler.idle_size(), 3 * MIB);
    recycler.set_max_idle(MIB);
    assert_eq!(recycler.idle_size(), MIB);
    recycler.set_max_idle(0);
    assert_eq!(recycler.idle_size(), 0);
    drop(recycler.acquire(MIB).unwrap());
    assert_eq!(recycler.idle_size(), 0);
}

#[test]
fn release_gives_back_what_is_old_enough() {
    let recycler = recycler(8 * MIB);
    drop(recycler.acquire(MIB).unwrap());
    assert_eq!(recycler.release(Duration::from_secs(3600)), 0);
    assert_eq!(recycler.release(Duration::ZERO), MIB);
    assert_eq!(recycler.idle_size(), 0);
}

#[test]
fn prewarmed_memory_serves_the_next_requests() {
    let recycler = recycler(128 * MIB);
    recycler.prewarm(80 * MIB).unwrap();
    assert_eq!(recycler.idle_size(), 80 * MIB);
    recycler.prewarm(80 * MIB).unwrap();
    assert_eq!(recycler.idle_size(), 80 * MIB);
    let blocks: Vec<_> = (0..2).map(|_| recycler.acquire(31 * MIB).unwrap()).collect();
    assert_eq!(recycler.idle_size(), 16 * MIB);
    drop(blocks);
}

#[test]
fn memory_that_cannot_be_had_is_an_error() {
    let recycler = recycler(0);
    assert_eq!(recycler.acquire(usize::MAX).err().map(|error| error.size), Some(usize::MAX));
    assert!(recycler.acquire(usize::MAX / 2).is_err());
}

#[test]
fn threads_may_share_a_recycler() {
    let recycler = recycler(4 * MIB);
    thread::scope(|scope| {
        for seed in 0..4 {
            scope.spawn(move || {
                for round in 0..200 {
                    let mut block = recycler.acquire((64 * KIB) << (round % 5)).unwrap();
                    block.fill(seed);
                    assert!(block.iter().all(|&byte| byte == seed));
                }
            });
        }
    });
    assert!(recycler.idle_size() <= 4 * MIB);
}

#[test]
fn advice_changes_no_bytes() {
    let mut memory = vec![3; 5 * MIB];
    prefer_huge_pages(&mut memory);
    prefer_huge_pages(&mut memory[..10]);
    prefer_huge_pages(&mut []);
    assert!(memory.iter().all(|&byte| byte == 3));
}

#[test]
fn the_heap_is_trimmed_where_the_library_can() {
    let memory = vec![3; 5 * MIB];
    assert_eq!(trim(), cfg!(target_env = "gnu"));
    assert!(memory.iter().all(|&byte| byte == 3));
}
