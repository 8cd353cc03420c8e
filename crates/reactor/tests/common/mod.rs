//! Runs tests in network namespaces, as root or as root of a user namespace.

use std::process::Command;

use reactor::namespace::{Namespace, root_command};

const INNER: &str = "REACTOR_TEST_IN_USER_NAMESPACE";

/// Runs `work` where namespaces can be made: here if this is root, else in a copy of this process that runs the test
/// `name` alone, in a user namespace. Fails if neither is possible.
pub(crate) fn privileged(name: &str, work: impl FnOnce()) {
    match Namespace::new() {
        Ok(_) => work(),
        Err(error) if std::env::var_os(INNER).is_some() => {
            panic!("neither root nor a user namespace: {error}")
        }
        Err(_) => {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command
                .args([name, "--exact", "--nocapture"])
                .env(INNER, "1");
            let status = root_command(&mut command).status();
            let status = status.expect("root, or a system that allows user namespaces");
            assert!(status.success(), "{name} in a user namespace: {status}");
        }
    }
}
