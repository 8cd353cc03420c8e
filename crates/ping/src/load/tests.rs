//! Messages of the load service, both ways.

use proptest::prelude::*;

use super::*;

fn greeting(nonce: [u8; 16]) -> Greeting {
    Greeting {
        refusal: None,
        needs_token: true,
        streams_max: 16,
        duration_max_ms: 60_000,
        nonce,
    }
}

fn request(direction: Direction) -> Request {
    Request {
        direction,
        duration_ms: 10_000,
        congestion: Congestion::new("bbr").unwrap(),
    }
}

#[test]
fn the_messages_have_the_documented_bytes() {
    let bytes = greeting([7; 16]).emit();
    let expected = *b"hLod\x01\0\x01\0\0\x10\0\0\0\0\xea\x60\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07";
    assert_eq!(bytes, expected);
    let bytes = request(Direction::Up).emit(&greeting([7; 16]), b"");
    assert_eq!(&bytes[..20], b"hLod\x01\x02\0\0\0\0\0\0\0\0\x27\x10bbr\0");
    assert_eq!(bytes[20..], [0; 32]);
    let report = Report {
        elapsed_us: 258,
        received: 1,
    };
    assert_eq!(report.emit(), *b"\0\0\0\0\0\0\x01\x02\0\0\0\0\0\0\0\x01");
    assert_eq!(Report::parse(&report.emit()), report);
}

#[test]
fn only_who_has_the_token_proves_it_and_for_one_connection() {
    let (one, other) = (greeting([1; 16]), greeting([2; 16]));
    let bytes = request(Direction::Down).emit(&one, b"secret");
    assert!(Request::is_proven(&bytes, &one, b"secret"));
    assert!(!Request::is_proven(&bytes, &one, b"Secret"));
    assert!(!Request::is_proven(&bytes, &other, b"secret"), "replayed");
    let mut changed = bytes;
    changed[5] = 2;
    assert!(!Request::is_proven(&changed, &one, b"secret"), "altered");
    let without = request(Direction::Down).emit(&one, b"");
    assert!(!Request::is_proven(&without, &one, b"secret"));
    assert!(Request::is_proven(&without, &one, b""));
}

#[test]
fn foreign_bytes_are_named() {
    assert_eq!(Greeting::parse(b"SSH-2.0-x"), Err(ParseError::Short));
    assert_eq!(Greeting::parse(&[b'x'; 32]), Err(ParseError::Magic));
    let mut bytes = greeting([0; 16]).emit();
    bytes[4] = 9;
    assert_eq!(Greeting::parse(&bytes), Err(ParseError::Version(9)));
    let mut bytes = request(Direction::Up).emit(&greeting([0; 16]), b"");
    bytes[5] = 3;
    assert_eq!(Request::parse(&bytes), Err(ParseError::Direction(3)));
    bytes[5] = 1;
    bytes[18] = b'/';
    assert_eq!(Request::parse(&bytes), Err(ParseError::Name));
    assert_eq!(
        Congestion::new("a_name_that_is_too_long"),
        Err(ParseError::Name)
    );
    assert_eq!(Congestion::new("").unwrap().name(), "");
}

fn refusals() -> impl Strategy<Value = Option<Refusal>> {
    any::<u8>().prop_map(Refusal::of)
}

proptest! {
    #[test]
    fn what_is_emitted_is_read(
        refusal in refusals(), needs_token: bool, streams_max: u16, duration_ms: u32, nonce: [u8; 16],
        name in "[a-z0-9_-]{0,15}", up: bool, token: Vec<u8>,
    ) {
        let greeting = Greeting { refusal, needs_token, streams_max, duration_max_ms: duration_ms, nonce };
        prop_assert_eq!(Greeting::parse(&greeting.emit()), Ok(greeting));
        let congestion = Congestion::new(&name).unwrap();
        prop_assert_eq!(congestion.name(), &name);
        let direction = if up { Direction::Up } else { Direction::Down };
        let request = Request { direction, duration_ms, congestion };
        let bytes = request.emit(&greeting, &token);
        prop_assert_eq!(Request::parse(&bytes), Ok(request));
        prop_assert!(Request::is_proven(&bytes, &greeting, &token));
        let answer = Answer { refusal, duration_ms, congestion };
        prop_assert_eq!(Answer::parse(&answer.emit()), Ok(answer));
    }

    #[test]
    fn no_bytes_make_it_panic(bytes: Vec<u8>) {
        let _ = (Greeting::parse(&bytes), Request::parse(&bytes), Answer::parse(&bytes));
    }
}
