//! Messages of the load service, from any client and any service.

use ping::load::{Answer, Greeting, REPORT, Report, Request};

/// Takes the first bytes of a TCP connection.
///
/// # Panics
/// If a parsed message is written differently, apart from its reserved bytes, or a request proves a token that its
/// sender does not have.
pub fn target(data: &[u8]) {
    if let Ok(greeting) = Greeting::parse(data) {
        assert_eq!(Greeting::parse(&greeting.emit()), Ok(greeting));
    }
    if let Ok(answer) = Answer::parse(data) {
        assert_eq!(Answer::parse(&answer.emit()), Ok(answer));
    }
    if let Some(report) = data.first_chunk::<REPORT>() {
        assert_eq!(Report::parse(report).emit(), *report);
    }
    let greeting = Greeting {
        refusal: None,
        needs_token: true,
        streams_max: 1,
        duration_max_ms: 1,
        nonce: [1; 16],
    };
    if let Ok(request) = Request::parse(data) {
        let written = request.emit(&greeting, b"token");
        assert_eq!(Request::parse(&written), Ok(request));
        assert!(Request::is_proven(&written, &greeting, b"token"));
        let received = data.first_chunk().expect("a request has its length");
        assert!(!Request::is_proven(received, &greeting, b"token"));
    }
}
