//! The users file: any text is either parsed, or refused with faults that lie within it.

use aaa::users::{Proof, Reject, Users, Verdict};

/// Takes a users file; invalid UTF-8 is replaced first.
///
/// # Panics
/// If a fault lies outside the text or names no remedy, or if a wrong password is accepted.
pub fn target(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match Users::parse(&text) {
        Ok(users) => {
            let wrong = [0xff; 256];
            let verdict = users.authenticate(b"ann", &Proof::Pap(&wrong));
            assert!(matches!(
                verdict,
                Verdict::Reject(Reject::UnknownUser | Reject::WrongPassword)
            ));
            assert!(users.len() <= text.matches("[[user]]").count());
        }
        Err(faults) => {
            let lines = text.matches('\n').count() + 1;
            assert!((1..=100).contains(&faults.iter().count()));
            for fault in &faults {
                let line = fault.place.map(|place| place.line);
                assert!(
                    line.is_some_and(|line| (1..=lines).contains(&line)),
                    "{fault}"
                );
                assert!(!fault.message.is_empty() && !fault.remedy.is_empty());
            }
        }
    }
}
