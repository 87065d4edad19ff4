//! Checks how many slots there are, and what is counted.

#![allow(clippy::unwrap_used, reason = "a test")]

use offloop_pool::Pool;

fn pool(concurrency: u32) -> &'static Pool {
    let pool = Box::leak(Box::new(Pool::new()));
    pool.set_concurrency(concurrency, false);
    pool
}

#[test]
fn there_are_as_many_slots_as_the_concurrency_says() {
    let pool = pool(2);
    let first = pool.acquire(false, false).unwrap();
    let _second = pool.acquire(false, false).unwrap();
    assert!(pool.acquire(false, false).is_none());
    drop(first);
    assert_eq!((pool.running(), pool.completed()), (1, 0));
    assert!(pool.acquire(false, false).is_some());
}

#[test]
fn a_task_counts_as_completed_when_it_drops_its_slot() {
    let pool = pool(1);
    let slot = pool.acquire(false, false).unwrap().used();
    assert_eq!(pool.completed(), 0);
    drop(slot);
    assert_eq!((pool.running(), pool.completed()), (0, 1));
}

#[test]
fn tasks_on_files_have_half_of_the_slots_and_one_at_least() {
    for (concurrency, most) in [(1, 1), (2, 1), (3, 1), (4, 2)] {
        let pool = pool(concurrency);
        let slots: Vec<_> = (0..8).map_while(|_| pool.acquire(true, false)).collect();
        assert_eq!(slots.len(), most, "{concurrency}");
        let others: Vec<_> = (0..8).map_while(|_| pool.acquire(false, false)).collect();
        assert_eq!(others.len() + slots.len(), concurrency as usize);
    }
}

#[test]
fn a_file_task_that_finds_no_slot_leaves_the_count_of_files() {
    let pool = pool(1);
    let slot = pool.acquire(false, false).unwrap();
    assert!(pool.acquire(true, false).is_none());
    drop(slot);
    assert!(pool.acquire(true, false).is_some());
}

#[test]
fn a_task_may_start_regardless() {
    let pool = pool(1);
    let slots: Vec<_> = (0..3).map_while(|_| pool.acquire(true, true)).collect();
    assert_eq!((slots.len(), pool.running()), (3, 3));
}

#[test]
fn the_default_is_set_once() {
    let pool = Box::leak(Box::new(Pool::new()));
    assert!(pool.acquire(false, false).is_none());
    pool.set_concurrency(3, true);
    pool.set_concurrency(4, true);
    assert_eq!(pool.concurrency(), 3);
    pool.set_concurrency(5, false);
    assert_eq!(pool.concurrency(), 5);
}
