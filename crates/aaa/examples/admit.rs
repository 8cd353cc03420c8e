//! Admits a subscriber from a users file and a pool, without I/O: the proof, the settings, the address.
//!
//! `cargo run -p headend-aaa --example admit`
#![forbid(unsafe_code)]

use aaa::Pools;
use aaa::pools::{Holder, Request, Spec};
use aaa::users::{Proof, Users, Verdict};

const USERS: &str = "\
[[user]]
name = \"ann\"
password = \"the cat sat\"
pool = \"home\"
session_timeout_s = 3600
";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let users = Users::parse(USERS)?;
    let home = Spec {
        name: "home".into(),
        ranges: vec!["10.64.0.0/24".parse()?],
        skip_ends: true,
        ..Spec::default()
    };
    // The seed comes from the owner: equal seeds give equal addresses.
    let mut pools =
        Pools::new(vec![home], Vec::new(), 1).map_err(|faults| faults[0].to_string())?;
    for (session, name, password) in [
        (1, "ann", "the cat sat"),
        (2, "ann", "wrong"),
        (3, "bob", "x"),
    ] {
        match users.authenticate(name.as_bytes(), &Proof::Pap(password.as_bytes())) {
            Verdict::Accept(_) => {
                let request = Request {
                    pool: Some("home"),
                    holder: Holder(session),
                    user: name.as_bytes(),
                    sticky: false,
                };
                let address = pools.take(&request)?;
                println!("session {session}: {name} gets {address}");
            }
            Verdict::Reject(why) => println!("session {session}: {name} is refused: {why:?}"),
        }
    }
    assert!(
        pools
            .holder("10.64.0.1".parse()?)
            .is_none_or(|holder| holder == Holder(1))
    );
    Ok(())
}
