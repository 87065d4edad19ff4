//! JSON Lines files: judges rows, reads them in batches, repairs torn tails, appends rows, saves whole files.
//!
//! Tasks call this crate through `crates/binding/{repair,read,log,save}.rs`. Three layers:
//!
//! | layer | works on | modules |
//! |---|---|---|
//! | rows | bytes in memory | `judge`, `pick`, `standard`, `census`, `fields`, `field_reader` |
//! | walks | anything that can be read at an offset | `tail`, `scan`, `batches`, `last` |
//! | files | files, locks, folders | `repair`, `open`, `log`, `draft`, `saver`, `batch_reader`, `field_scan` |

mod batch_reader;
mod batch_writer;
mod batches;
mod census;
mod draft;
mod edit;
mod ends;
mod errno;
mod field_reader;
mod field_scan;
mod field_text;
mod fields;
mod file;
mod judge;
mod last;
mod lock;
mod log;
mod mark;
mod name;
mod open;
mod pick;
mod progress;
mod read_at;
mod repair;
mod saver;
mod scan;
mod standard;
mod tail;
mod utf8;

pub use batch_reader::{BatchReadError, BatchReader, ReadSettings};
pub use batch_writer::{BatchWriter, RowCopy, RowSelection, RowSource};
pub use batches::{RowBatches, RowSlice, RowVisitor};
pub use census::Census;
pub use draft::Draft;
pub use edit::{Action, Policy};
pub use ends::{EndsWriter, write_ends};
pub use errno::errno;
pub use field_scan::{ScanSettings, describe_rows};
pub use file::{FileError, open_to_read};
pub use judge::{GoodRow, Judge, RowCause, TornRow, Verdict, judge};
pub use last::{LastSettings, last};
pub use lock::lock;
pub use log::{AppendResult, Log, Medium, SyscallCounts};
pub use offloop_grammar::PointerError;
pub use open::{LogSettings, open_log};
pub use pick::{Fields, pick};
pub use progress::{ExamineError, ExamineProgress, Interrupt, PollFn, ProgressFn};
pub use read_at::ReadAt;
pub use repair::{RepairError, RepairSettings, Report, SyncLevel, repair, repair_file};
pub use saver::{FileSaver, FileTooLarge};
pub use scan::{RowFlaw, scan};
pub use standard::{standard, standard_polled};
pub use tail::{BLOCK, Tail, TornTail, walk};
