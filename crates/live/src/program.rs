//! Programs in the namespaces.

use std::io;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use sojourn_scenario::plan::Program as ProgramConfig;

use crate::error::{LiveError, plain};
use crate::internet::WayOut;
use crate::kept::Kept;
use crate::namespace;
use crate::space::{End, LEVEL_VARIABLE, SERVER6_VARIABLE, Space};
use crate::sys;

/// A running program, which is killed with all of its children when this value is dropped.
#[derive(Debug)]
pub(crate) struct Program(Kept);

impl Program {
    /// Starts a program on a host of the network.
    ///
    /// # Errors
    /// If it cannot be started.
    pub(crate) fn start(
        space: &Space,
        end: &End,
        words: &[String],
        quiet: bool,
    ) -> Result<Self, LiveError> {
        let Some((name, arguments)) = words.split_first() else {
            return Err(LiveError::Program {
                name: "the program".to_owned(),
                reason: "no name".to_owned(),
            });
        };
        let mut command = Command::new(name);
        command
            .args(arguments)
            .env(ProgramConfig::SERVER_VARIABLE, space.target.v4.to_string())
            .env(SERVER6_VARIABLE, space.target.v6.to_string())
            .env(LEVEL_VARIABLE, space.level.to_string())
            .env("SOJOURN_CLIENT", space.client.addresses.v4.to_string());
        if quiet {
            command.stdin(Stdio::null()).stdout(Stdio::null());
        }
        let resolver = space.way_out.as_ref().and_then(WayOut::resolver);
        sys::contain(&mut command, namespace::is_own_user_namespace(), resolver);
        let failed = |error: &io::Error| LiveError::Program {
            name: name.clone(),
            reason: reason(name, error),
        };
        let kept = Kept::start(command, Some(&end.namespace));
        kept.map(Self).map_err(|e| failed(&e))
    }

    /// How the program ended, if it has.
    pub(crate) fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.0.ended()
    }
}

/// Why a program was not started.
fn reason(name: &str, error: &io::Error) -> String {
    // Other names are looked up in PATH.
    let is_path = name.contains('/');
    let file = Path::new(name);
    match error.kind() {
        io::ErrorKind::NotFound if is_path && file.exists() => {
            "the interpreter that its first line names does not exist".to_owned()
        }
        io::ErrorKind::NotFound => {
            let missing = if is_path {
                "no such file"
            } else {
                "no such program in PATH"
            };
            if name.contains(char::is_whitespace) {
                format!("{missing}; write its arguments as separate words, or use sh -c '…'")
            } else {
                missing.to_owned()
            }
        }
        io::ErrorKind::PermissionDenied if is_path && file.is_dir() => {
            "it is a directory; expected a program".to_owned()
        }
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ if error.raw_os_error() == Some(libc::ENOSPC) => {
            "the limit user.max_pid_namespaces or user.max_mnt_namespaces is reached".to_owned()
        }
        _ => plain(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing(name: &str) -> String {
        reason(name, &io::ErrorKind::NotFound.into())
    }

    #[test]
    fn a_command_in_one_word_is_explained() {
        assert_eq!(missing("ping"), "no such program in PATH");
        assert_eq!(
            missing("ping 100.64.0.2"),
            "no such program in PATH; write its arguments as separate words, or use sh -c '…'"
        );
        assert_eq!(missing("/no/such/ping"), "no such file");
        assert_eq!(
            missing("/no/such/ping 100.64.0.2"),
            "no such file; write its arguments as separate words, or use sh -c '…'"
        );
    }

    #[test]
    fn a_script_without_its_interpreter_is_not_missing_itself() {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        assert_eq!(
            missing(script),
            "the interpreter that its first line names does not exist"
        );
    }

    #[test]
    fn a_full_limit_of_namespaces_is_named() {
        let full = reason("ping", &io::Error::from_raw_os_error(libc::ENOSPC));
        assert!(full.contains("user.max_pid_namespaces"), "{full}");
    }

    #[test]
    fn a_directory_is_no_program() {
        let denied = |name: &str| reason(name, &io::ErrorKind::PermissionDenied.into());
        assert_eq!(denied("/"), "it is a directory; expected a program");
        assert_eq!(
            denied(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")),
            "permission denied"
        );
        // Not the directory `src`: a name without a slash is looked up in PATH.
        assert_eq!(denied("src"), "permission denied");
    }
}
