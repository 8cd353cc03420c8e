//! Errors as JSON: `{"error":{"code":..,"message":..}}`.

use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use control::reply::Code;
use serde_json::json;

use crate::link::Fault;

/// A request that cannot be answered.
#[derive(Clone, Debug)]
pub(crate) struct Fail {
    status: StatusCode,
    code: &'static str,
    message: String,
}

impl Fail {
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            code,
            message: message.into(),
        }
    }

    /// The request itself is wrong.
    pub(crate) fn bad(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad-request", message)
    }

    /// Nothing has this name.
    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not-found", message)
    }

    /// The message for people.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// A limit of ours is reached.
    pub(crate) fn busy(message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "limit", message)
    }
}

impl From<&Fault> for Fail {
    fn from(fault: &Fault) -> Self {
        match fault {
            Fault::Gone(message) => Self::new(StatusCode::BAD_GATEWAY, "gone", message),
            Fault::Version(message) => Self::new(StatusCode::BAD_GATEWAY, "version", message),
            Fault::Refused(refusal) => {
                let (status, code) = match refusal.code {
                    Code::NotFound => (StatusCode::NOT_FOUND, "not-found"),
                    Code::Limit => (StatusCode::SERVICE_UNAVAILABLE, "limit"),
                    Code::Version => (StatusCode::BAD_GATEWAY, "version"),
                    Code::Refused => (StatusCode::BAD_REQUEST, "refused"),
                    Code::BadRequest => (StatusCode::BAD_REQUEST, "bad-request"),
                };
                Self::new(status, code, &refusal.message)
            }
        }
    }
}

impl IntoResponse for Fail {
    fn into_response(self) -> Response {
        let body = json!({"error": {"code": self.code, "message": self.message}});
        let head = [(CONTENT_TYPE, "application/json")];
        (self.status, head, body.to_string()).into_response()
    }
}
