//! Checks the bound that blocks and reported memory share.

#![allow(clippy::unwrap_used, reason = "a test")]

use offloop_memory::{IdleBudget, Recycler};

const MIB: usize = 1 << 20;

fn budget(max_size: usize) -> (&'static Recycler, &'static IdleBudget) {
    let recycler = Box::leak(Box::new(Recycler::new(max_size)));
    (recycler, Box::leak(Box::new(IdleBudget::new(recycler, max_size))))
}

#[test]
fn reported_memory_takes_the_place_of_blocks() {
    let (recycler, budget) = budget(4 * MIB);
    drop(recycler.acquire(3 * MIB).unwrap());
    assert_eq!(budget.idle_size(), 3 * MIB);
    let share = budget.share();
    assert!(share.grow(2 * MIB));
    assert_eq!((recycler.idle_size(), budget.idle_size()), (0, 2 * MIB));
    share.shrink(MIB);
    assert_eq!((recycler.max_idle(), budget.idle_size()), (3 * MIB, MIB));
    drop(share);
    assert_eq!((recycler.max_idle(), budget.idle_size()), (4 * MIB, 0));
}

#[test]
fn a_report_beyond_three_quarters_of_the_bound_is_refused_and_counts_nothing() {
    let (recycler, budget) = budget(4 * MIB);
    let [first, second] = [budget.share(), budget.share()];
    assert!(first.grow(3 * MIB));
    assert!(!first.grow(1) && !second.grow(1) && !second.grow(usize::MAX));
    assert_eq!((budget.idle_size(), recycler.max_idle()), (3 * MIB, MIB));
    drop(first);
    assert!(second.grow(1));
}

#[test]
fn a_share_subtracts_no_more_than_it_has() {
    let (_, budget) = budget(4 * MIB);
    let [first, second] = [budget.share(), budget.share()];
    assert!(first.grow(MIB) && second.grow(MIB));
    first.shrink(2 * MIB);
    assert_eq!(budget.idle_size(), MIB);
}

#[test]
fn a_lower_bound_leaves_reports_as_they_are() {
    let (recycler, budget) = budget(4 * MIB);
    let share = budget.share();
    assert!(share.grow(3 * MIB));
    budget.set_max_size(2 * MIB);
    assert_eq!((budget.max_size(), recycler.max_idle(), budget.idle_size()), (2 * MIB, 0, 3 * MIB));
    assert!(!share.grow(0));
    budget.set_max_size(5 * MIB);
    assert_eq!(recycler.max_idle(), 2 * MIB);
}
