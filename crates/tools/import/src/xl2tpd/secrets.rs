//! Secrets: `l2tp-secrets`, `chap-secrets` and `pap-secrets`; and what they make of an LNS and of a client.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use base::Redacted;

use super::Work;
use super::words::{Word, words};
use crate::document::{Table, Value};
use crate::files::Source;
use crate::report::{Fate, Place};

/// A line of chap-secrets or pap-secrets.
#[derive(Debug)]
pub(super) struct User {
    pub place: Place,
    client: String,
    server: String,
    secret: Redacted<String>,
    addresses: Vec<String>,
    is_pap: bool,
}

/// The most users that a users file may have.
const USERS_MAX: usize = 1 << 20;

const COLUMN: &str = "secret";

impl Work<'_> {
    /// Reads l2tp-secrets: our name, the peer's name, the secret. headend has one secret.
    pub(super) fn tunnel_secrets(&mut self, file: &Source) {
        self.used.insert((file.name.to_string(), false));
        file.report_bad_lines(&mut self.import.report);
        let mut first: Option<(Redacted<String>, Place)> = None;
        for (number, line) in file.lines() {
            let line = line.trim();
            let at = file.at(number);
            if line.is_empty() || line.starts_with(['#', ';']) {
                continue;
            }
            let fields: Vec<&str> = line.split_whitespace().collect();
            let [_, _, secret] = fields[..] else {
                self.import.report.unknown(
                    &at,
                    COLUMN,
                    "not of the form OUR-NAME THEIR-NAME SECRET",
                );
                continue;
            };
            match &first {
                None => {
                    self.import
                        .report
                        .key(&at, COLUMN, &["l2tp.secret_file"], "");
                    first = Some((Redacted::new(secret.to_owned()), at));
                }
                Some((known, _)) if known.reveal() == secret => {
                    self.import
                        .report
                        .key(&at, COLUMN, &["l2tp.secret_file"], "");
                }
                Some((_, place)) => {
                    let why = format!("headend has one secret for all peers, that of {place}");
                    self.import.report.lost(&at, COLUMN, &why);
                }
            }
        }
        if let Some((secret, place)) = first {
            self.import.secret("l2tp", "l2tp", secret.reveal(), &place);
        }
    }

    /// Reads chap-secrets or pap-secrets.
    pub(super) fn user_secrets(&mut self, file: &Source, is_pap: bool) {
        self.used.insert((file.name.to_string(), false));
        file.report_bad_lines(&mut self.import.report);
        let (words, faults) = words(&file.text);
        for (line, _) in faults {
            self.import.report.unknown(
                &file.at(line),
                COLUMN,
                "a quote is not closed, or a word is too long",
            );
        }
        let mut rest = words.as_slice();
        while let Some((first, after)) = rest.split_first() {
            let end = after
                .iter()
                .position(|word| word.is_first)
                .unwrap_or(after.len());
            let at = file.at(first.line);
            self.user(&rest[..=end], &at, is_pap);
            rest = &after[end..];
        }
    }

    fn user(&mut self, words: &[Word], at: &Place, is_pap: bool) {
        let [client, server, secret, addresses @ ..] = words else {
            let why = "not of the form CLIENT SERVER SECRET ADDRESS...";
            return self.import.report.unknown(at, "user", why);
        };
        if self.users.len() == USERS_MAX {
            return self
                .import
                .report
                .lost(at, "user", "headend reads 1048576 users at most");
        }
        self.users.push(User {
            place: at.clone(),
            client: client.text.clone(),
            server: server.text.clone(),
            secret: Redacted::new(secret.text.clone()),
            addresses: addresses.iter().map(|word| word.text.clone()).collect(),
            is_pap,
        });
    }

    /// The keys that follow from several options of the LNS.
    pub(super) fn finish_lns(&mut self) {
        self.pools();
        let authenticates = self.authentication_key();
        self.users_file(authenticates);
        let ppp = self.import.config.table("ppp");
        if ppp.get("ipv6").is_none() {
            ppp.set("ipv6", false, &[], "pppd's default");
        }
        if ppp.get("address").is_none() {
            ppp.set(
                "address",
                "10.255.255.254",
                &[],
                "not in the source: headend needs an address of its own",
            );
        }
        let tun = self.import.config.table("tun");
        if tun.get("name").is_none() {
            tun.set(
                "name",
                "headend%d",
                &[],
                "pppd makes a device for each subscriber, headend one for all",
            );
        }
    }

    /// Leaves out pools without ranges.
    fn pools(&mut self) {
        let (pools, rest) = std::mem::take(&mut self.import.config.tables)
            .into_iter()
            .partition::<Vec<Table>, _>(|table| table.path == "pool");
        self.import.config.tables = rest;
        for pool in pools {
            let is_out = pool.get("left out").is_some();
            if pool.get("ranges").is_some() && !is_out {
                self.import.config.tables.push(pool);
                continue;
            }
            for entry in pool.entries {
                for place in entry.from.iter().filter(|_| entry.key != "left out") {
                    let why = if is_out {
                        "assign ip is off"
                    } else {
                        "the section has no ip range"
                    };
                    let key = format!("pool.{}", entry.key);
                    let report = &mut self.import.report;
                    report.take_back(place, &key, Fate::NotSupported, why);
                }
            }
        }
    }

    /// Sets `ppp.authenticate`; returns whether peers are asked.
    fn authentication_key(&mut self) -> bool {
        let auth = std::mem::take(&mut self.auth);
        let name = "ppp.authenticate";
        let is_required = !auth.required.is_empty() || !auth.methods.is_empty();
        if !auth.nobody.is_empty() && !is_required {
            let places: Vec<Place> = auth.nobody.iter().map(|(place, _)| place.clone()).collect();
            self.import
                .config
                .table("ppp")
                .set("authenticate", "nobody", &places, "");
            for (place, option) in &auth.nobody {
                self.import.report.key(place, option, &[name], "");
            }
            for (_, place, option) in &auth.refused {
                self.import.report.line(
                    place,
                    option,
                    Fate::NoEffect,
                    "nobody is asked to authenticate",
                );
            }
            return false;
        }
        for (place, option) in &auth.nobody {
            self.import
                .report
                .lost(place, option, "another option requires authentication");
        }
        let methods = self.methods(&auth);
        let required = auth.required.iter().map(|(place, option)| (place, *option));
        let named = auth
            .methods
            .iter()
            .map(|(_, place, option)| (place, *option));
        let places: Vec<(&Place, &str)> = required.chain(named).collect();
        for (refused, place, option) in &auth.refused {
            if methods.contains(refused) {
                self.import
                    .report
                    .lost(place, option, "no other method is left");
            } else {
                self.import.report.key(place, option, &[name], "");
            }
        }
        // An option without a name is reported already.
        for (place, option) in places.iter().filter(|(_, option)| !option.is_empty()) {
            self.import.report.key(place, option, &[name], "");
        }
        let mut from: Vec<Place> = places.iter().map(|(place, _)| (*place).clone()).collect();
        from.extend(auth.refused.iter().map(|(_, place, _)| place.clone()));
        let note = if from.is_empty() {
            "the methods for which the source has secrets"
        } else {
            ""
        };
        self.import
            .config
            .table("ppp")
            .set("authenticate", Value::texts(&methods), &from, note);
        true
    }

    /// The methods that are required and not refused; without a required one, those for which there are secrets.
    fn methods(&self, auth: &super::ppp::Auth) -> Vec<&'static str> {
        let has = |is_pap: bool| self.users.iter().any(|user| user.is_pap == is_pap);
        let mut methods: Vec<&'static str> = ["chap", "pap"]
            .into_iter()
            .filter(|method| match auth.methods.is_empty() {
                true => has(*method == "pap"),
                false => auth.methods.iter().any(|(required, ..)| required == method),
            })
            .collect();
        if methods.is_empty() {
            methods.push("chap");
        }
        let before = methods.clone();
        methods.retain(|method| auth.refused.iter().all(|(refused, ..)| refused != method));
        if methods.is_empty() { before } else { methods }
    }

    /// Turns the users that are left into users.toml.
    fn users_file(&mut self, authenticates: bool) {
        let our_name = match self.import.config.table("ppp").get("name") {
            Some(Value::Text(name)) => Some(name.clone()),
            _ => None,
        };
        let mut known: BTreeMap<String, (Place, Redacted<String>)> = BTreeMap::new();
        for user in std::mem::take(&mut self.users) {
            let report = &mut self.import.report;
            let is_ours =
                user.server == "*" || our_name.as_ref().is_none_or(|name| *name == user.server);
            let lost = match &user {
                _ if !authenticates => {
                    report.line(
                        &user.place,
                        "user",
                        Fate::NoEffect,
                        "nobody is asked to authenticate",
                    );
                    continue;
                }
                _ if !is_ours => {
                    let why = "the server's name in the line is not the name of this LNS";
                    report.line(&user.place, "user", Fate::NoEffect, why);
                    continue;
                }
                user if user.client == "*" || user.client.is_empty() => {
                    "each user of users.toml has a name"
                }
                user if user.secret.reveal().starts_with('@') => {
                    "the secret is in another file; give it as password in users.toml"
                }
                user if user.secret.reveal().is_empty() => {
                    "the secret is empty, which lets pppd use other sources; a user needs a password"
                }
                user if user.is_pap && user.secret.reveal().starts_with('$') => {
                    "the secret is hashed; users.toml holds passwords in clear text"
                }
                _ => "",
            };
            if !lost.is_empty() {
                report.lost(&user.place, "user", lost);
                continue;
            }
            if let Some((first, secret)) = known.get(&user.client) {
                if secret.reveal() == user.secret.reveal() {
                    report.line(
                        &user.place,
                        "user",
                        Fate::Kept,
                        &format!("the same user as in {first}"),
                    );
                } else {
                    report.lost(
                        &user.place,
                        "user",
                        &format!("a user has one password, here that of {first}"),
                    );
                }
                continue;
            }
            self.add_user(&user);
            known.insert(user.client, (user.place, user.secret));
        }
        if authenticates {
            let note = "from chap-secrets and pap-secrets";
            self.import
                .config
                .note("users", "file", crate::output::USERS, note);
        }
    }

    fn add_user(&mut self, user: &User) {
        let mut table = Table::each("user");
        let from = std::slice::from_ref(&user.place);
        table.set("name", user.client.as_str(), from, "");
        table.set("password", user.secret.reveal().as_str(), &[], "");
        let mut why = String::new();
        match user.addresses.as_slice() {
            [one] if one.parse::<Ipv4Addr>().is_ok() => table.set("address", one.as_str(), &[], ""),
            [] => "pppd allows a user without an address list no address; headend assigns one of a pool".clone_into(&mut why),
            [one] if one == "*" => {}
            _ => "users.toml has one address for a user or the pool's; the other restrictions on addresses are left out".clone_into(&mut why),
        }
        let keys = ["user.name", "user.password", "user.address"];
        let keys = if table.get("address").is_some() {
            &keys[..]
        } else {
            &keys[..2]
        };
        self.import.users.tables.push(table);
        if user.addresses.is_empty() || why.is_empty() {
            self.import.report.key(&user.place, "user", keys, &why);
        } else {
            self.import.report.lost(&user.place, "user", &why);
        }
    }

    /// Name and secret of the client, if a `lac` section has a name.
    pub(super) fn take_client(&mut self) {
        if self.ends == [true, false] {
            return;
        }
        let name = match self.import.config.has("client") {
            true => self.import.config.table("client").get("name").cloned(),
            false => None,
        };
        let (remote, password) = (self.client.remote_name.take(), self.client.password.take());
        if let Some((secret, place)) = &password {
            self.import.secret("client", "client", secret, place);
            self.import
                .report
                .key(place, "password", &["client.secret_file"], "");
        }
        if let Some((_, place)) = &remote {
            self.import.report.key(
                place,
                "remotename",
                &["client.secret_file"],
                "it selects the line of the secrets file",
            );
        }
        let Some(Value::Text(name)) = name else {
            return;
        };
        if password.is_none() {
            let server = remote.as_ref().map(|(server, _)| server.as_str());
            let fits = |user: &User| {
                user.client == name
                    && (user.server == "*" || server.is_none_or(|server| server == user.server))
            };
            if let Some(at) = self.users.iter().position(fits) {
                let user = self.users.remove(at);
                self.import
                    .secret("client", "client", user.secret.reveal(), &user.place);
                self.import
                    .report
                    .key(&user.place, "user", &["client.secret_file"], "");
            }
        }
        self.import.config.table("tun");
    }
}
