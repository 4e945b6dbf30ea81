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
            if is_connection(error) { StoreError::Unavailable(text) } else { StoreError::Broken(text) }
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
    let text = format!("{name}: {}{detail}", answer.message());
    let code = answer.code();
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
