//! Errors of requests: an error number and a message.

use hdfs_native::HdfsError;
use iolite_os::explained;
use std::io;
use std::time::Duration;

/// The maximum number of messages to report of requests that failed together.
const MOST_MESSAGES: usize = 8;

/// Why a request failed.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) errno: i32,
    pub(crate) words: String,
}

impl Failure {
    pub(crate) fn new(errno: i32, words: impl Into<String>) -> Failure {
        Failure { errno, words: words.into() }
    }

    /// A transfer of data failed. It needs connections to datanodes, and to the namenode for the addresses of new blocks.
    pub(crate) fn of_data(error: HdfsError) -> Failure {
        let failure = Failure::from(error);
        let what = match failure.errno {
            libc::ECONNREFUSED => "refuses the connection",
            libc::ECONNRESET => "has ended the connection",
            _ => return failure,
        };
        let words = format!(
            "a datanode (or the namenode) {what}; hdfs dfsadmin -report shows which ones are running"
        );
        Failure { words, ..failure }
    }

    /// The server did not answer in time.
    pub(crate) fn timeout(limit: Duration) -> Failure {
        let words = format!("no answer within {} s (hdfs_timeout)", limit.as_secs_f64());
        Failure::new(libc::ETIMEDOUT, words)
    }

    /// Prefixes the message with the name of the chunk or server.
    pub(crate) fn about(self, what: &str) -> Failure {
        Failure { words: format!("{what}: {}", self.words), ..self }
    }

    /// Combines the failures of several requests: the error number of the first one, and up to [`MOST_MESSAGES`]
    /// different messages.
    pub(crate) fn of_all(failures: Vec<Failure>) -> Result<(), Failure> {
        let Some(errno) = failures.first().map(|failure| failure.errno) else { return Ok(()) };
        let mut messages: Vec<String> = Vec::new();
        for Failure { words, .. } in failures {
            if !messages.contains(&words) {
                messages.push(words);
            }
        }
        let more = messages.len().saturating_sub(MOST_MESSAGES);
        messages.truncate(MOST_MESSAGES);
        let mut words = messages.join("; ");
        if more > 0 {
            words += &format!("; and {more} more of this kind");
        }
        Err(Failure { errno, words })
    }

    /// The file does not exist.
    pub(crate) fn is_missing(&self) -> bool {
        self.errno == libc::ENOENT
    }
}

impl From<Failure> for io::Error {
    fn from(failure: Failure) -> io::Error {
        explained(&io::Error::from_raw_os_error(failure.errno), failure.words)
    }
}

impl From<HdfsError> for Failure {
    fn from(error: HdfsError) -> Failure {
        match error {
            HdfsError::FileNotFound(path) => Failure::new(libc::ENOENT, format!("{path} does not exist")),
            HdfsError::IsADirectoryError(path) => {
                Failure::new(libc::EISDIR, format!("{path} is a directory"))
            }
            HdfsError::AlreadyExists(words) => Failure::new(libc::EBUSY, first_line(&words)),
            HdfsError::IOError(error) => of_connection(&error),
            HdfsError::RPCError(class, words) | HdfsError::FatalRPCError(class, words) => {
                of_exception(&class, &words)
            }
            HdfsError::InvalidRPCResponse(error) => Failure::new(
                libc::EPROTO,
                format!("the server is not an HDFS namenode, or the port is not its RPC port: {error}"),
            ),
            HdfsError::SASLError(words) => refused_login(&words),
            HdfsError::NoSASLMechanism => refused_login("it offers no mechanism that this client supports"),
            error @ HdfsError::GSSAPIError(..) => refused_login(&error.to_string()),
            HdfsError::DataTransferError(words) => of_transfer(&words),
            error @ (HdfsError::InvalidArgument(_)
            | HdfsError::InvalidPath(_)
            | HdfsError::UrlParseError(_)) => Failure::new(libc::EINVAL, error.to_string()),
            error @ HdfsError::UnsupportedFeature(_) => Failure::new(libc::EOPNOTSUPP, error.to_string()),
            error => Failure::new(libc::EIO, first_line(&error.to_string())),
        }
    }
}

fn refused_login(why: &str) -> Failure {
    let words = format!(
        "the server requires a login: {}; HADOOP_CONF_DIR has to name the configuration of a cluster with \
         Kerberos, and kinit gets a ticket",
        first_line(why)
    );
    Failure::new(libc::EACCES, words)
}

/// An error of the connection.
fn of_connection(error: &io::Error) -> Failure {
    let errno = error.raw_os_error().unwrap_or(match error.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionAborted => libc::ECONNRESET,
        io::ErrorKind::TimedOut => libc::ETIMEDOUT,
        _ => libc::EIO,
    });
    let words = match errno {
        libc::ECONNREFUSED => {
            "nothing listens there: is the namenode running, and is port= its RPC port?".to_owned()
        }
        libc::ECONNRESET => {
            "the connection was reset: the server has gone, or port= is not the RPC port of a namenode"
                .to_owned()
        }
        _ => iolite_types::describe_error(error),
    };
    Failure::new(errno, words)
}

/// An error of a datanode, or of the connection to it.
fn of_transfer(words: &str) -> Failure {
    let line = first_line(words);
    let words = match line.starts_with("All ") {
        // The client appends a debug dump of all addresses.
        true => "none of the datanodes for this data can be reached".to_owned(),
        false => line,
    };
    Failure::new(libc::EIO, words)
}

/// The error number of an exception of the server, and the remedy.
fn of_exception(class: &str, words: &str) -> Failure {
    let line = first_line(words);
    let line = line.strip_prefix(class).map_or(line.as_str(), |rest| rest.trim_start_matches(": "));
    let name = class.rsplit(['.', '$']).next().unwrap_or(class);
    let (errno, remedy) = match name {
        "FileNotFoundException" => (libc::ENOENT, ""),
        "AccessControlException" | "AuthorizationException" => (
            libc::EACCES,
            "; HADOOP_USER_NAME names the user, where there is no Kerberos, and hdfs dfs -chmod gives rights",
        ),
        "SafeModeException" => (
            libc::EROFS,
            "; hdfs dfsadmin -safemode get shows whether it is over, and -safemode leave ends it",
        ),
        "NSQuotaExceededException" | "DSQuotaExceededException" | "QuotaExceededException" => {
            (libc::EDQUOT, "; hdfs dfs -count -q shows the quotas")
        }
        "StandbyException" => (libc::EAGAIN, "; name the active namenode, or the name service"),
        "ParentNotDirectoryException" | "PathIsNotDirectoryException" => (libc::ENOTDIR, ""),
        "PathIsNotEmptyDirectoryException" => (libc::ENOTEMPTY, ""),
        "InvalidPathException" => (libc::EINVAL, ""),
        "LeaseExpiredException" | "RecoveryInProgressException" => {
            (libc::EBUSY, "; another client writes to it, or has removed it")
        }
        "RpcNoSuchMethodException" | "RpcNoSuchProtocolException" | "VersionMismatch" => {
            (libc::EPROTO, "; is this the RPC port of a namenode?")
        }
        _ if line.contains("could only be written to 0 of") => {
            (libc::ENOSPC, "; hdfs dfsadmin -report shows the datanodes, and how much room they have")
        }
        _ => (libc::EIO, ""),
    };
    Failure::new(errno, format!("{line}{remedy}"))
}

/// Removes the stack trace that servers append to messages.
fn first_line(words: &str) -> String {
    words.lines().next().unwrap_or_default().trim().trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_of_several_requests_are_all_reported() {
        assert!(Failure::of_all(Vec::new()).is_ok());
        let lost = |chunk: u64| Failure::new(libc::ETIMEDOUT, format!("chunk {chunk}: lost"));
        let told = Failure::of_all(vec![lost(1), lost(2), lost(1)]).unwrap_err();
        assert_eq!((told.errno, &*told.words), (libc::ETIMEDOUT, "chunk 1: lost; chunk 2: lost"));
        let told = Failure::of_all((0..10).map(lost).collect()).unwrap_err().words;
        assert!(told.ends_with("chunk 7: lost; and 2 more of this kind"), "{told}");
    }

    fn failure(class: &str, words: &str) -> (i32, String) {
        let failure = Failure::from(HdfsError::RPCError(class.to_owned(), words.to_owned()));
        (failure.errno, failure.words)
    }

    #[test]
    fn exceptions_become_errors_with_a_remedy() {
        let (errno, words) = failure(
            "org.apache.hadoop.hdfs.server.namenode.SafeModeException",
            "Cannot create file /x. Name node is in safe mode.\nIt was turned on manually.\n\tat org.apache",
        );
        assert_eq!(errno, libc::EROFS);
        assert!(
            words.starts_with("Cannot create file /x. Name node is in safe mode; hdfs dfsadmin"),
            "{words}"
        );
        let (errno, words) = failure(
            "java.io.IOException",
            "File /x could only be written to 0 of the 1 minReplication nodes. There are 0 datanode(s) running",
        );
        assert_eq!(errno, libc::ENOSPC);
        assert!(words.ends_with("how much room they have"), "{words}");
        assert_eq!(failure("org.apache.hadoop.security.AccessControlException", "no").0, libc::EACCES);
        assert_eq!(failure("a.B$DSQuotaExceededException", "no").0, libc::EDQUOT);
        assert_eq!(failure("java.io.IOException", "a.\nb"), (libc::EIO, "a".to_owned()));
    }

    #[test]
    fn failed_connections_name_the_option_to_check() {
        let refused = io::Error::from_raw_os_error(libc::ECONNREFUSED);
        let failure = Failure::from(HdfsError::IOError(refused));
        assert_eq!(failure.errno, libc::ECONNREFUSED);
        assert!(failure.words.contains("port="), "{failure:?}");
        let cut = || HdfsError::IOError(io::ErrorKind::UnexpectedEof.into());
        assert_eq!(Failure::from(cut()).errno, libc::ECONNRESET);
        let cut = Failure::of_data(cut());
        assert_eq!(cut.errno, libc::ECONNRESET);
        assert!(cut.words.starts_with("a datanode (or the namenode) has ended the connection"), "{cut:?}");
        assert!(Failure::timeout(Duration::from_millis(1500)).words.contains("1.5 s (hdfs_timeout)"));
    }
}
