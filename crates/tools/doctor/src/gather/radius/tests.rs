//! Probes against a small server on loopback.

use base::Redacted;
use wire::radius::attribute::MESSAGE_AUTHENTICATOR;

use super::*;

/// How the server behaves.
#[derive(Clone, Copy)]
struct Manner {
    secret: &'static [u8],
    /// Whether it answers Status-Server.
    knows_status: bool,
    /// Whether it drops requests whose Message-Authenticator it cannot verify, or that lack one.
    drops_unverified: [bool; 2],
    signs: bool,
}

const GOOD: Manner = Manner {
    secret: b"alpha",
    knows_status: true,
    drops_unverified: [true, false],
    signs: true,
};

fn answer(request: &Packet<'_>, manner: Manner) -> Option<Vec<u8>> {
    let signed = signature(request, &request.authenticator(), manner.secret);
    let is_status = request.code() == code::STATUS_SERVER;
    let [drops_wrong, drops_missing] = manner.drops_unverified;
    if is_status && !manner.knows_status
        || signed == Signature::Wrong && drops_wrong
        || signed == Signature::Missing && drops_missing
    {
        return None;
    }
    let mut reply = Vec::new();
    let code = match is_status {
        true => code::ACCESS_ACCEPT,
        false => code::ACCESS_REJECT,
    };
    let mut writer = Writer::new(
        &mut reply,
        code,
        request.identifier(),
        &request.authenticator(),
    );
    if manner.signs {
        writer.message_authenticator();
    }
    writer.finish_signed(manner.secret).unwrap();
    Some(reply)
}

/// Asks a server of that manner, with the secret `alpha`.
fn ask_one(manner: Manner) -> Answer {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let serve = std::thread::spawn(move || {
        socket
            .set_read_timeout(Some(Duration::from_millis(20)))
            .unwrap();
        let mut datagram = [0; LENGTH_MAX];
        let mut names = Vec::new();
        while stopped.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
            let Ok((length, peer)) = socket.recv_from(&mut datagram) else {
                continue;
            };
            let request = Packet::parse(&datagram[..length]).unwrap();
            names.extend(request.find(USER_NAME).map(|name| name.value.to_vec()));
            if let Some(reply) = answer(&request, manner) {
                socket.send_to(&reply, peer).unwrap();
            }
        }
        names
    });
    let server = Server {
        name: "one".into(),
        address,
        is_accounting: false,
        secret: Redacted::new(b"alpha".as_slice().into()),
        requires_signature: true,
    };
    let got = ask(&server, b"nas");
    drop(stop);
    let names = serve.join().unwrap();
    assert!(names.iter().all(|name| name == NAME), "{names:?}");
    got
}

fn verified(answer: &Answer) -> Option<(&'static str, bool)> {
    match answer {
        Answer::Verified { to, is_signed, .. } => Some((to, *is_signed)),
        _ => None,
    }
}

#[test]
fn a_server_with_status_server_is_verified_by_it() {
    assert_eq!(verified(&ask_one(GOOD)), Some(("Status-Server", true)));
}

/// FreeRADIUS may sign replies to Access-Requests only.
#[test]
fn an_unsigned_reply_to_status_server_does_not_decide() {
    let manner = Manner {
        signs: false,
        ..GOOD
    };
    // Its replies to Access-Requests are unsigned too.
    assert_eq!(verified(&ask_one(manner)), Some(("Access-Request", false)));
}

#[test]
fn a_server_without_status_server_is_verified_by_an_access_request() {
    let manner = Manner {
        knows_status: false,
        signs: false,
        ..GOOD
    };
    assert_eq!(verified(&ask_one(manner)), Some(("Access-Request", false)));
}

#[test]
fn another_secret_is_told_from_silence() {
    let manner = Manner {
        secret: b"beta",
        ..GOOD
    };
    let got = ask_one(manner);
    let Answer::WrongSecret { to } = got else {
        panic!("{got:?}");
    };
    assert_eq!(to, "Access-Request without Message-Authenticator");
}

#[test]
fn a_server_that_drops_everything_is_silent() {
    let manner = Manner {
        secret: b"beta",
        drops_unverified: [true, true],
        ..GOOD
    };
    assert!(matches!(ask_one(manner), Answer::Silence));
}

#[test]
fn a_closed_port_is_told_by_icmp() {
    let free = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let server = Server {
        name: "one".into(),
        address,
        is_accounting: true,
        secret: Redacted::new(b"alpha".as_slice().into()),
        requires_signature: true,
    };
    let got = ask(&server, b"nas");
    let Answer::Unreachable(error) = got else {
        panic!("{got:?}");
    };
    assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
}

#[test]
fn a_reply_with_an_appended_attribute_has_a_wrong_secret() {
    let mut reply = Vec::new();
    let request = [7; 16];
    let mut writer = Writer::new(&mut reply, code::ACCESS_ACCEPT, 1, &request);
    writer.attribute(MESSAGE_AUTHENTICATOR, &[0; 16]);
    writer.finish_signed(b"alpha").unwrap();
    let judged = judge(&reply, (Kind::Status, &request), b"alpha", Duration::ZERO);
    assert!(matches!(judged, Answer::WrongSecret { .. }));
    let judged = judge(b"hello", (Kind::Status, &request), b"alpha", Duration::ZERO);
    assert!(matches!(judged, Answer::Malformed));
}
