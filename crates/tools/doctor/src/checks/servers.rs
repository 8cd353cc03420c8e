//! RADIUS servers.

use std::io;

use crate::finding::Findings;
use crate::host::{Answer, Host, ServerFact};
use crate::wants::Wants;

pub(super) fn radius(_: &Wants, host: &Host, findings: &mut Findings) {
    for server in &host.servers {
        one(server, findings);
    }
}

fn one(server: &ServerFact, findings: &mut Findings) {
    let purpose = match server.is_accounting {
        true => "accounting",
        false => "authentication",
    };
    let (name, address) = (&server.name, server.address);
    let who = format!("RADIUS server {name} ({purpose}, {address})");
    match &server.answer {
        Answer::Verified {
            to,
            is_signed,
            round_trip,
        } => {
            let ms = round_trip.as_secs_f64() * 1e3;
            if !is_signed && server.requires_signature && !server.is_accounting {
                findings.fault(
                    format!("{who} answers {to}, but without Message-Authenticator, so headend ignores its replies."),
                    "in FreeRADIUS, put update reply { Message-Authenticator := 0x00 } into post-auth and Post-Auth-Type REJECT, or write require_message_authenticator = false into [[radius.server]]",
                );
            } else {
                findings.ok(format!("{who} answers {to} in {ms:.1} ms, and the reply verifies."));
            }
        }
        Answer::WrongSecret { to } => findings.fault(
            format!("{who} answers {to}, but the reply does not verify: the secrets differ."),
            format!("compare the secret of [[radius.server]] {name} with the server's for this client"),
        ),
        Answer::Malformed => findings.fault(
            format!("{who} sends something that is no RADIUS reply."),
            format!("check the address and port: {purpose} = \"{address}\""),
        ),
        Answer::Silence if server.is_accounting => findings.advice(
            format!("{who} does not answer Status-Server; it may be down, or have no Status-Server."),
            "in FreeRADIUS, write status_server = yes into radiusd.conf's security section, and look at its log",
        ),
        Answer::Silence => findings.fault(
            format!(
                "{who} is silent: it is down, a filter drops packets, the server does not know this client, or the secrets differ \
                 (a server that requires Message-Authenticator drops requests that it cannot verify)."
            ),
            format!("read the server's log while you run headend doctor; tcpdump -ni any udp port {} shows what arrives", address.port()),
        ),
        Answer::Unreachable(error) => unreachable(&who, error, server, findings),
    }
}

fn unreachable(who: &str, error: &io::Error, server: &ServerFact, findings: &mut Findings) {
    let ip = server.address.ip();
    match error.kind() {
        io::ErrorKind::ConnectionRefused => findings.fault(
            format!("{who} is not running: its host reports the port as closed."),
            format!("systemctl start freeradius  # on {ip}; or correct the port"),
        ),
        _ => findings.fault(
            format!("{who} cannot be reached: {error}."),
            format!("ip route get {ip}"),
        ),
    }
}
