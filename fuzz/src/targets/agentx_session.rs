//! A master agent's bytes: PDUs survive being written again, and a session stays within its limits.

use agentx::pdu::{HEADER_LEN, Header, Pdu};
use agentx::{Answer, Config, INPUT_MAX, Oid, Question, RESPONSE_MAX, Session};
use base::Instant;

/// Takes PDUs one behind the other, then all bytes as those of a master.
///
/// # Panics
/// If a PDU does not survive being written, or the session keeps more than it may.
pub fn target(data: &[u8]) {
    let mut rest = data;
    while let Some(head) = rest.first_chunk::<HEADER_LEN>() {
        let Ok(header) = Header::parse(head) else {
            break;
        };
        let Some(payload) = rest.get(HEADER_LEN..HEADER_LEN + header.payload) else {
            break;
        };
        rest = &rest[HEADER_LEN + header.payload..];
        if let Ok(pdu) = Pdu::parse(&header, payload) {
            let mut again = Vec::new();
            pdu.emit(&mut again);
            let header =
                Header::parse(again.first_chunk().expect("a header")).expect("what we wrote");
            assert_eq!(Pdu::parse(&header, &again[HEADER_LEN..]), Ok(pdu));
        }
    }
    serve(data);
}

/// A session that is open, in which `data` arrives.
fn serve(data: &[u8]) {
    let now = Instant::ZERO;
    let config = Config {
        id: Oid::default(),
        description: String::new(),
        context: None,
        subtrees: Vec::new(),
    };
    let mut session = Session::new(config, now);
    session.handle_timeout(now);
    session.connected(now);
    // The response to Open, with session 1.
    let mut response = vec![1, 18, 0x10, 0];
    response.extend([0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 8]);
    response.extend([0; 8]);
    session.receive(&response, now);
    session.receive(data, now);
    let mut answered = 0;
    while let Some(question) = session.question() {
        answered += 1;
        let end = matches!(question, Question::Next { .. });
        session.answer(if end { Answer::End } else { Answer::NoObject }, now);
        assert!(answered <= 2 * data.len());
    }
    assert!(session.room() <= INPUT_MAX && session.output().len() <= 65_536 + RESPONSE_MAX + 64);
}
