//! Files of JSON Lines: what a row is worth, what a torn tail is, and how a file is made safe to append to.
//!
//! The judge knows bytes only, the walk reads anything that can be read at an offset, `repair` alone knows files.

mod examine;
mod file;
mod judge;
mod lock;
mod plain;
mod plan;
mod repair;
mod scan;
mod source;
mod stack;
mod tail;
mod utf8;

pub use examine::{ExamineError, Progress, Stopped, Watch};
pub use file::FileError;
pub use judge::{Cause, Judge, Kept, Torn, Verdict, judge};
pub use lock::{LOCK_SYSCALL, lock};
pub use plan::{Action, Policy};
pub use repair::{Durability, RepairError, Report, Settings, repair, repair_file};
pub use scan::{BadRow, scan};
pub use source::ReadAt;
pub use tail::{BLOCK, Tail, TornTail, walk};
