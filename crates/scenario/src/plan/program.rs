//! Programs that a live run starts.

/// Maximum number of strings of a command, the program included.
const MOST_ARGUMENTS: usize = 1_000;
/// Maximum length of all strings of a command. Linux allows 2 MB for the arguments and the environment, and 128 kB for
/// one string (execve(2)).
const MOST_BYTES: usize = 100_000;

/// A program that a live run starts, and the server that it connects to.
///
/// Both are started without a shell, with the address of the server's host in the environment variable
/// [`Program::SERVER_VARIABLE`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The program and its arguments, as the scenario has them; runs on the client's host.
    pub command: Vec<String>,
    /// The server and its arguments, started before `command` on the server's host and stopped at the end; `None`:
    /// there is none.
    pub server: Option<Vec<String>>,
}

impl Program {
    /// The environment variable with the address of the server's host.
    pub const SERVER_VARIABLE: &str = "SOJOURN_SERVER";

    /// The command with `server`, the address of the server's host, in place of `$SOJOURN_SERVER` and
    /// `${SOJOURN_SERVER}`. Nothing else is expanded.
    pub fn expanded(&self, server: &str) -> Vec<String> {
        let arguments = self.command.iter();
        arguments
            .map(|argument| expanded(argument, server))
            .collect()
    }

    /// The key and the rule if it cannot be started.
    pub(crate) fn check(&self) -> Option<(&'static str, String)> {
        let server = self.server.iter().map(|server| ("server", server));
        let mut lists = [("command", &self.command)].into_iter().chain(server);
        lists.find_map(|(key, list)| Some((key, fault(list)?)))
    }
}

/// What is wrong with a program and its arguments.
fn fault(list: &[String]) -> Option<String> {
    if list.first().is_none_or(String::is_empty) {
        return Some(
            "names no program; expected a list such as [\"iperf3\", \"--version\"]".into(),
        );
    }
    if list.len() > MOST_ARGUMENTS {
        let given = list.len();
        return Some(format!(
            "{given} strings are too many; expected at most {MOST_ARGUMENTS}"
        ));
    }
    let bytes: usize = list.iter().map(String::len).sum();
    if bytes > MOST_BYTES {
        return Some(format!(
            "too long: {bytes} bytes; expected at most {MOST_BYTES}"
        ));
    }
    let nul = list.iter().position(|argument| argument.contains('\0'))?;
    Some(format!(
        "string {} contains a NUL character, which no argument can have; remove it",
        nul + 1
    ))
}

/// `argument` with `server` in place of the variable. As in a shell, `$SOJOURN_SERVERS` is another variable.
fn expanded(argument: &str, server: &str) -> String {
    let mut text = String::with_capacity(argument.len());
    let mut rest = argument;
    while let Some((before, from)) = rest.split_once('$') {
        text.push_str(before);
        rest = if let Some(after) = after_variable(from) {
            text.push_str(server);
            after
        } else {
            text.push('$');
            from
        };
    }
    text.push_str(rest);
    text
}

/// What follows the name of the variable at the start of `text`; `None`: it does not start with it.
fn after_variable(text: &str) -> Option<&str> {
    if let Some(braced) = text.strip_prefix('{') {
        return braced
            .strip_prefix(Program::SERVER_VARIABLE)?
            .strip_prefix('}');
    }
    let after = text.strip_prefix(Program::SERVER_VARIABLE)?;
    let goes_on = |c: char| c == '_' || c.is_ascii_alphanumeric();
    (!after.starts_with(goes_on)).then_some(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(command: &[&str]) -> Program {
        Program {
            command: command.iter().map(|&text| text.to_owned()).collect(),
            server: None,
        }
    }

    #[test]
    fn only_the_variable_of_the_server_is_expanded() {
        for (argument, expected) in [
            ("$SOJOURN_SERVER", "10.0.0.2"),
            ("${SOJOURN_SERVER}", "10.0.0.2"),
            ("http://$SOJOURN_SERVER:80/a", "http://10.0.0.2:80/a"),
            ("${SOJOURN_SERVER}0,$SOJOURN_SERVER.", "10.0.0.20,10.0.0.2."),
            ("$$SOJOURN_SERVER", "$10.0.0.2"),
            ("$SOJOURN_SERVER$", "10.0.0.2$"),
            ("$SOJOURN_SERVERS", "$SOJOURN_SERVERS"),
            ("$SOJOURN_SERVER_2", "$SOJOURN_SERVER_2"),
            ("${SOJOURN_SERVER", "${SOJOURN_SERVER"),
            ("${SOJOURN_SERVER:-x}", "${SOJOURN_SERVER:-x}"),
            ("$HOME ~ *", "$HOME ~ *"),
            ("SOJOURN_SERVER", "SOJOURN_SERVER"),
            ("", ""),
        ] {
            let command = program(&["ping", argument]).expanded("10.0.0.2");
            assert_eq!(command, ["ping", expected]);
        }
        // What is inserted is not expanded again.
        let command = program(&["$SOJOURN_SERVER"]).expanded("$SOJOURN_SERVER");
        assert_eq!(command, ["$SOJOURN_SERVER"]);
    }

    #[test]
    fn what_cannot_be_started_is_refused() {
        let fault = |command: &[&str]| program(command).check();
        assert_eq!(fault(&["sh", "-c", ""]), None);
        assert!(fault(&[]).is_some());
        assert!(fault(&[""]).is_some());
        assert_eq!(fault(&["a"; MOST_ARGUMENTS]), None);
        assert!(fault(&["a"; MOST_ARGUMENTS + 1]).is_some());
        assert_eq!(fault(&["a", &"x".repeat(MOST_BYTES - 1)]), None);
        assert!(fault(&["a", &"x".repeat(MOST_BYTES)]).is_some());
        let (key, rule) = fault(&["a", "b\0"]).unwrap();
        assert_eq!(key, "command");
        assert!(rule.starts_with("string 2 contains a NUL"), "{rule}");
        let with_server = Program {
            server: Some(Vec::new()),
            ..program(&["a"])
        };
        assert_eq!(with_server.check().unwrap().0, "server");
    }
}
