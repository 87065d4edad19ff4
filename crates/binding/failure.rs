//! Failures of calls and tasks, which cross the boundary as data.
//!
//! Every glue file makes them, in tasks and on the JS thread. `src/runtime/native.ts` makes errors of them, so that an error
//! has the stack of its caller.

use napi_derive::napi;
use offloop_base64::{DecodeError, EncodeError};
use offloop_body::EventError;
use offloop_experts::{PayloadError, PlanError};
use offloop_json::{CheckError, Malformed, TooLarge, TranscodeError};
use offloop_jsonl::{FileError, FileTooLarge, RepairError, errno};
use offloop_memory::OutOfMemory;

/// The data of an error.
#[napi(object, object_from_js = false)]
#[derive(Clone, Debug)]
pub struct Failure {
    pub code: &'static str,
    pub message: String,
    pub offset: Option<f64>,
    pub pointer: Option<String>,
    pub turn: Option<f64>,
    pub path: Option<String>,
    /// The error of the system, by libuv's number. `native.ts` takes code and message from it.
    pub errno: Option<i32>,
    pub syscall: Option<&'static str>,
}

/// Why a call failed. Each cause has one code.
#[derive(Clone, Copy, Debug)]
pub enum FailureCause {
    Base64,
    Json,
    Lift,
    Experts,
    Torn,
    Corrupt,
    Locked,
    TooLarge,
    /// An error of the file system, with an `errno`. `native.ts` has its code.
    System,
    /// An aborted signal of the caller. `native.ts` throws its reason.
    Aborted,
    Internal,
}

impl FailureCause {
    const fn code(self) -> &'static str {
        match self {
            Self::Base64 => "ERR_OFFLOOP_BASE64",
            Self::Json => "ERR_OFFLOOP_JSON",
            Self::Lift => "ERR_OFFLOOP_LIFT",
            Self::Experts => "ERR_OFFLOOP_EXPERTS",
            Self::Torn => "ERR_OFFLOOP_TORN",
            Self::Corrupt => "ERR_OFFLOOP_CORRUPT",
            Self::Locked => "ERR_OFFLOOP_LOCKED",
            Self::TooLarge => "ERR_OFFLOOP_TOO_LARGE",
            Self::System => "ERR_SYSTEM_ERROR",
            Self::Aborted => "ABORT_ERR",
            Self::Internal => "ERR_OFFLOOP_INTERNAL",
        }
    }
}

impl Failure {
    /// Returns a failure without a place.
    pub fn new(cause: FailureCause, message: impl Into<String>) -> Self {
        Self {
            code: cause.code(),
            message: message.into(),
            offset: None,
            pointer: None,
            turn: None,
            path: None,
            errno: None,
            syscall: None,
        }
    }

    /// Returns the failure of a repair of the file at `path`.
    pub fn of_repair(error: RepairError, path: &str) -> Self {
        let (cause, offset) = match error {
            RepairError::File(error) => return error.into(),
            RepairError::Stopped => return Self::new(FailureCause::Aborted, error.to_string()),
            RepairError::Torn { offset } => (FailureCause::Torn, Some(offset as f64)),
            RepairError::Corrupt { offset } => (FailureCause::Corrupt, Some(offset as f64)),
            RepairError::Locked | RepairError::Unsettled => (FailureCause::Locked, None),
        };
        let message = format!("{error}: '{path}'");
        Self { offset, path: Some(path.to_owned()), ..Self::new(cause, message) }
    }
}

impl Failure {
    /// Returns whether the failure has this cause.
    pub fn is_of(&self, cause: FailureCause) -> bool {
        self.code == cause.code()
    }
}

impl From<DecodeError> for Failure {
    fn from(error: DecodeError) -> Self {
        let Some(offset) = error.offset() else {
            return Self::new(FailureCause::Internal, error.to_string());
        };
        Self { offset: Some(offset as f64), ..Self::new(FailureCause::Base64, error.to_string()) }
    }
}

impl From<CheckError> for Failure {
    fn from(error: CheckError) -> Self {
        Self {
            offset: Some(error.offset as f64),
            ..Self::new(FailureCause::Json, error.to_string())
        }
    }
}

impl From<EventError> for Failure {
    fn from(error: EventError) -> Self {
        match error {
            EventError::Json(error) => error.into(),
            EventError::TooLarge(_) => Self::new(FailureCause::TooLarge, error.to_string()),
            EventError::Memory(error) => error.into(),
        }
    }
}

impl From<PayloadError> for Failure {
    fn from(error: PayloadError) -> Self {
        let offset = error.data_offset().map(|offset| offset as f64);
        Self { offset, ..Self::new(FailureCause::Experts, error.to_string()) }
    }
}

impl From<PlanError> for Failure {
    fn from(error: PlanError) -> Self {
        let Some(turn) = error.turn() else {
            return Self::new(FailureCause::Experts, error.to_string());
        };
        Self {
            turn: Some(turn as f64),
            ..Self::new(FailureCause::Experts, format!("turn {turn}: {error}"))
        }
    }
}

impl From<FileError> for Failure {
    fn from(error: FileError) -> Self {
        Self {
            path: Some(error.path.to_string_lossy().into_owned()),
            errno: Some(errno(&error.source)),
            syscall: Some(error.syscall),
            ..Self::new(FailureCause::System, error.source.to_string())
        }
    }
}

impl From<EncodeError> for Failure {
    fn from(error: EncodeError) -> Self {
        Self::new(FailureCause::Internal, error.to_string())
    }
}

impl From<OutOfMemory> for Failure {
    fn from(error: OutOfMemory) -> Self {
        Self::new(FailureCause::TooLarge, error.to_string())
    }
}

impl From<FileTooLarge> for Failure {
    fn from(error: FileTooLarge) -> Self {
        Self::new(FailureCause::TooLarge, error.to_string())
    }
}

impl From<Malformed> for Failure {
    fn from(error: Malformed) -> Self {
        Self::new(FailureCause::Internal, error.to_string())
    }
}

impl From<TranscodeError<Failure>> for Failure {
    fn from(error: TranscodeError<Self>) -> Self {
        match error {
            TranscodeError::Malformed => Malformed.into(),
            TranscodeError::Json(error) => error.into(),
            TranscodeError::TooLarge => Self::new(FailureCause::TooLarge, TooLarge.to_string()),
            TranscodeError::TooDeep(error) => Self::new(FailureCause::TooLarge, error.to_string()),
            TranscodeError::Stopped(failure) => failure,
        }
    }
}
