//! What the server's and the connection's errors mean for a caller: try again, make room, or call a person.

use crate::store::StoreError;
use deadpool_postgres::PoolError;
use std::error::Error as _;
use std::io;
use tokio_postgres::Error;
use tokio_postgres::error::{DbError, SqlState};

pub fn error(name: &str, error: &Error) -> StoreError {
    match error.as_db_error() {
        Some(answer) => from_server(name, answer),
        None => {
            let text = match error.source() {
                Some(source) => format!("{name}: {error}: {source}"),
                None => format!("{name}: {error}"),
            };
            if is_distrust(error) {
                StoreError::Untrusted(text)
            } else if is_connection(error) {
                StoreError::Unavailable(text)
            } else {
                StoreError::Broken(text)
            }
        }
    }
}

pub fn pool(name: &str, problem: PoolError) -> StoreError {
    match problem {
        PoolError::Backend(source) => error(name, &source),
        PoolError::Timeout(_) => StoreError::Unavailable(format!("{name}: no connection in time")),
        PoolError::Closed | PoolError::NoRuntimeSpecified | PoolError::PostCreateHook(_) => {
            StoreError::Broken(format!("{name}: {problem}"))
        }
    }
}

fn from_server(name: &str, answer: &DbError) -> StoreError {
    let detail = answer.detail().map(|detail| format!(" ({detail})")).unwrap_or_default();
    let code = answer.code();
    let advice = if is_unlisted(answer) { ENCRYPTION } else { "" };
    let text = format!("{name}: {}{detail}{advice}", answer.message());
    if *code == SqlState::DISK_FULL {
        StoreError::Full(text)
    } else if [SqlState::READ_ONLY_SQL_TRANSACTION, SqlState::INSUFFICIENT_PRIVILEGE].contains(code) {
        StoreError::ReadOnly(text)
    } else if [SqlState::DATA_CORRUPTED, SqlState::INDEX_CORRUPTED].contains(code) {
        StoreError::Damaged(text)
    } else if may_pass(code) {
        StoreError::Unavailable(text)
    } else {
        StoreError::Broken(text)
    }
}

/// The server's list of who may come, and how, has nobody like us. Often it is about encryption, and the server's words for
/// that are in its own language; the file's name is in none.
fn is_unlisted(answer: &DbError) -> bool {
    *answer.code() == SqlState::INVALID_AUTHORIZATION_SPECIFICATION && answer.message().contains("pg_hba.conf")
}

const ENCRYPTION: &str =
    "; if it asks for encryption, say sslmode=require in the store's URL, and if it refuses it, sslmode=disable";

/// Errors that come from the moment and not from what was asked. The transaction they hit is rolled back.
fn may_pass(code: &SqlState) -> bool {
    const CONNECTION_EXCEPTION: &str = "08";
    const INSUFFICIENT_RESOURCES: &str = "53";
    [CONNECTION_EXCEPTION, INSUFFICIENT_RESOURCES].iter().any(|class| code.code().starts_with(class))
        || [
            SqlState::ADMIN_SHUTDOWN,
            SqlState::CRASH_SHUTDOWN,
            SqlState::CANNOT_CONNECT_NOW,
            SqlState::QUERY_CANCELED,
            SqlState::LOCK_NOT_AVAILABLE,
            SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
            SqlState::T_R_SERIALIZATION_FAILURE,
            SqlState::T_R_DEADLOCK_DETECTED,
        ]
        .contains(code)
}

/// The server's certificate is not one to believe. Trying again would not make it so.
fn is_distrust(error: &Error) -> bool {
    let io = error.source().and_then(|source| source.downcast_ref::<io::Error>());
    let tls = io.and_then(io::Error::get_ref).and_then(|inner| inner.downcast_ref::<rustls::Error>());
    matches!(tls, Some(rustls::Error::InvalidCertificate(_)))
}

/// The connection could not be made, or was lost. What the client itself could not encode is not the connection's fault.
fn is_connection(error: &Error) -> bool {
    let io = error.source().and_then(|source| source.downcast_ref::<io::Error>());
    error.is_closed() || io.is_some_and(|io| io.kind() != io::ErrorKind::InvalidInput)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_from_the_moment_may_pass() {
        for code in ["08006", "53300", "57P01", "57P02", "57P03", "55P03", "40P01", "25P03"] {
            assert!(may_pass(&SqlState::from_code(code)), "{code}");
        }
        for code in ["42P01", "23505", "28P01", "3D000"] {
            assert!(!may_pass(&SqlState::from_code(code)), "{code}");
        }
    }
}
