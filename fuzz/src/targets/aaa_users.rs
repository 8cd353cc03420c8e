//! The users file: any text is read or refused with faults that stand in it.

use aaa::users::{Proof, Reject, Users, Verdict};

/// Takes a users file; octets that are no text are made text first.
///
/// # Panics
/// When a fault stands outside of the text or gives no remedy, or when somebody is let in with a wrong password.
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
