//! Failures cross the boundary as data; `native.ts` makes errors of them, which so carry the caller's stack.

use napi_derive::napi;
use offloop_base64::{DecodeError, EncodeError};
use offloop_body::ScanError;
use offloop_experts::{PayloadError, PlanError};
use offloop_json::{CheckError, Malformed, TooLarge, TranscodeError};
use offloop_jsonl::{FileError, RepairError};
use offloop_memory::OutOfMemory;

use crate::errno::errno;

/// What `native.ts` makes an error of.
#[napi(object, object_from_js = false)]
#[derive(Clone, Debug)]
pub struct Failure {
    pub code: &'static str,
    pub message: String,
    pub offset: Option<f64>,
    pub pointer: Option<String>,
    pub turn: Option<f64>,
    pub path: Option<String>,
    /// Of the system, as libuv numbers its errors: what `native.ts` takes code and message from.
    pub errno: Option<i32>,
    pub syscall: Option<&'static str>,
}

/// The one table from causes to codes.
#[derive(Clone, Copy, Debug)]
pub enum Cause {
    Base64,
    Json,
    Lift,
    Experts,
    Torn,
    Corrupt,
    Locked,
    TooLarge,
    /// A file system's, which has an `errno`: `native.ts` knows its code.
    System,
    /// The caller's signal: `native.ts` throws its reason.
    Aborted,
    Internal,
}

impl Cause {
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
    pub fn new(cause: Cause, message: impl Into<String>) -> Self {
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

    /// Of a repair of the file at `path`.
    pub fn of_repair(error: RepairError, path: &str) -> Self {
        let (cause, offset) = match error {
            RepairError::File(error) => return error.into(),
            RepairError::Stopped => return Self::new(Cause::Aborted, error.to_string()),
            RepairError::Torn { offset } => (Cause::Torn, Some(offset as f64)),
            RepairError::Corrupt { offset } => (Cause::Corrupt, Some(offset as f64)),
            RepairError::Locked | RepairError::Unsettled => (Cause::Locked, None),
        };
        let message = format!("{error}: '{path}'");
        Self { offset, path: Some(path.to_owned()), ..Self::new(cause, message) }
    }
}

impl Failure {
    pub fn is_of(&self, cause: Cause) -> bool {
        self.code == cause.code()
    }
}

impl From<DecodeError> for Failure {
    fn from(error: DecodeError) -> Self {
        let Some(offset) = error.offset() else {
            return Self::new(Cause::Internal, error.to_string());
        };
        Self { offset: Some(offset as f64), ..Self::new(Cause::Base64, error.to_string()) }
    }
}

impl From<CheckError> for Failure {
    fn from(error: CheckError) -> Self {
        Self { offset: Some(error.offset as f64), ..Self::new(Cause::Json, error.to_string()) }
    }
}

impl From<ScanError<Failure>> for Failure {
    fn from(error: ScanError<Self>) -> Self {
        match error {
            ScanError::Json(error) => error.into(),
            ScanError::Stopped(failure) => failure,
        }
    }
}

impl From<PayloadError> for Failure {
    fn from(error: PayloadError) -> Self {
        Self::new(Cause::Experts, error.to_string())
    }
}

impl From<PlanError> for Failure {
    fn from(error: PlanError) -> Self {
        let Some(turn) = error.turn() else {
            return Self::new(Cause::Experts, error.to_string());
        };
        Self {
            turn: Some(turn as f64),
            ..Self::new(Cause::Experts, format!("turn {turn}: {error}"))
        }
    }
}

impl From<FileError> for Failure {
    fn from(error: FileError) -> Self {
        Self {
            path: Some(error.path.to_string_lossy().into_owned()),
            errno: Some(errno(&error.source)),
            syscall: Some(error.syscall),
            ..Self::new(Cause::System, error.source.to_string())
        }
    }
}

impl From<EncodeError> for Failure {
    fn from(error: EncodeError) -> Self {
        Self::new(Cause::Internal, error.to_string())
    }
}

impl From<OutOfMemory> for Failure {
    fn from(error: OutOfMemory) -> Self {
        Self::new(Cause::TooLarge, error.to_string())
    }
}

impl From<Malformed> for Failure {
    fn from(error: Malformed) -> Self {
        Self::new(Cause::Internal, error.to_string())
    }
}

impl From<TranscodeError<Failure>> for Failure {
    fn from(error: TranscodeError<Self>) -> Self {
        match error {
            TranscodeError::Malformed => Malformed.into(),
            TranscodeError::Json(error) => error.into(),
            TranscodeError::TooLarge => Self::new(Cause::TooLarge, TooLarge.to_string()),
            TranscodeError::Stopped(failure) => failure,
        }
    }
}
