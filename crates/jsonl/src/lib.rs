//! Files of JSON Lines: what a row is worth, what a torn tail is, and how a file is made safe to append to.
//!
//! The judge knows bytes only, the walk reads anything that can be read at an offset, `repair` alone knows files.

mod census;
mod draft;
mod examine;
mod file;
mod judge;
mod last;
mod lock;
mod log;
mod open;
mod pick;
mod plan;
mod repair;
mod rows;
mod scan;
mod source;
mod stack;
mod standard;
mod tail;
mod told;
mod utf8;

pub use census::Census;
pub use draft::Draft;
pub use examine::{ExamineError, Progress, Stopped, Watch};
pub use file::{FileError, open_to_read};
pub use judge::{Cause, Judge, Kept, Torn, Verdict, judge};
pub use last::last;
pub use lock::lock;
pub use log::{Appended, Counts, Log, Medium, ends_of};
pub use open::{LogSettings, open_log};
pub use pick::{Fields, PointerError, pick};
pub use plan::{Action, Policy};
pub use repair::{Durability, RepairError, Report, Settings, repair, repair_file};
pub use rows::{Row, Rows, Visit};
pub use scan::{BadRow, scan};
pub use source::ReadAt;
pub use standard::standard;
pub use tail::{BLOCK, Tail, TornTail, walk};
pub use told::{Place, Told, Wanted};
