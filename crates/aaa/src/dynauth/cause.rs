//! Why a request is refused: the values of Error-Cause that we send (RFC 5176, section 3.5).

use wire::radius::attribute::error_cause;

/// The reason in a Disconnect-NAK or a CoA-NAK.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cause {
    /// 401: an attribute that is not supported here.
    UnsupportedAttribute,
    /// 402: no attribute identifies a session, or nothing is to change.
    MissingAttribute,
    /// 403: a NAS attribute names another NAS.
    NasMismatch,
    /// 404: an attribute occurs too often, or its length is impossible.
    InvalidRequest,
    /// 405: a Service-Type other than Framed.
    UnsupportedService,
    /// 407: a value that cannot be applied, such as the name of a filter that does not exist.
    InvalidValue,
    /// 501: this client may not change the session.
    Prohibited,
    /// 503: no session matches, or the session is ending.
    NotFound,
    /// 504: the session cannot be ended.
    NotRemovable,
    /// 506: a table is full, or another subscriber has the network.
    Unavailable,
    /// 508: the change is possible for one session only, and more than one matches.
    MultipleSessions,
}

impl Cause {
    /// Every cause, in the order of their values.
    pub const ALL: [Self; 11] = [
        Self::UnsupportedAttribute,
        Self::MissingAttribute,
        Self::NasMismatch,
        Self::InvalidRequest,
        Self::UnsupportedService,
        Self::InvalidValue,
        Self::Prohibited,
        Self::NotFound,
        Self::NotRemovable,
        Self::Unavailable,
        Self::MultipleSessions,
    ];

    /// The value of the attribute.
    #[must_use]
    pub const fn value(self) -> u32 {
        match self {
            Self::UnsupportedAttribute => error_cause::UNSUPPORTED_ATTRIBUTE,
            Self::MissingAttribute => error_cause::MISSING_ATTRIBUTE,
            Self::NasMismatch => error_cause::NAS_IDENTIFICATION_MISMATCH,
            Self::InvalidRequest => error_cause::INVALID_REQUEST,
            Self::UnsupportedService => error_cause::UNSUPPORTED_SERVICE,
            Self::InvalidValue => error_cause::INVALID_VALUE,
            Self::Prohibited => error_cause::PROHIBITED,
            Self::NotFound => error_cause::SESSION_NOT_FOUND,
            Self::NotRemovable => error_cause::SESSION_NOT_REMOVABLE,
            Self::Unavailable => error_cause::RESOURCES_UNAVAILABLE,
            Self::MultipleSessions => error_cause::MULTIPLE_SESSIONS,
        }
    }

    /// Its name in counters.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::UnsupportedAttribute => "unsupported_attribute",
            Self::MissingAttribute => "missing_attribute",
            Self::NasMismatch => "nas_mismatch",
            Self::InvalidRequest => "invalid_request",
            Self::UnsupportedService => "unsupported_service",
            Self::InvalidValue => "invalid_value",
            Self::Prohibited => "prohibited",
            Self::NotFound => "not_found",
            Self::NotRemovable => "not_removable",
            Self::Unavailable => "unavailable",
            Self::MultipleSessions => "multiple_sessions",
        }
    }

    /// The index of its counter.
    pub(super) const fn place(self) -> usize {
        self as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_have_the_values_of_the_rfc_and_names_of_their_own() {
        let values = Cause::ALL.map(Cause::value);
        // RFC 5176, section 3.5. A NAS sends none of 406 (it supports both), 502 and 505 (proxies), 507 (no
        // "Authorize Only").
        assert_eq!(
            values,
            [401, 402, 403, 404, 405, 407, 501, 503, 504, 506, 508]
        );
        let names: std::collections::BTreeSet<_> =
            Cause::ALL.iter().map(|one| one.name()).collect();
        assert_eq!(names.len(), Cause::ALL.len());
        for (place, cause) in Cause::ALL.into_iter().enumerate() {
            assert_eq!(cause.place(), place);
        }
    }
}
