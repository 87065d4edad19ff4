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
    let report = budget.report(2 * MIB).unwrap();
    assert_eq!((recycler.idle_size(), budget.idle_size()), (0, 2 * MIB));
    drop(report);
    assert_eq!((recycler.max_idle(), budget.idle_size()), (4 * MIB, 0));
}

#[test]
fn a_report_beyond_the_bound_is_refused_and_counts_nothing() {
    let (recycler, budget) = budget(MIB);
    let report = budget.report(MIB).unwrap();
    assert!(budget.report(1).is_none());
    assert_eq!((budget.idle_size(), recycler.max_idle()), (MIB, 0));
    drop(report);
    assert!(budget.report(1).is_some());
}

#[test]
fn a_lower_bound_leaves_reports_as_they_are() {
    let (recycler, budget) = budget(4 * MIB);
    let _report = budget.report(3 * MIB).unwrap();
    budget.set_max_size(2 * MIB);
    assert_eq!((budget.max_size(), recycler.max_idle(), budget.idle_size()), (2 * MIB, 0, 3 * MIB));
    assert!(budget.report(0).is_none());
    budget.set_max_size(5 * MIB);
    assert_eq!(recycler.max_idle(), 2 * MIB);
}
