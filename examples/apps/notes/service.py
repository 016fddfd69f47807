"""Keeps notes in PostgreSQL: GET /notes lists them, POST /notes adds one, GET /about says who answers."""

import json
import os
import signal
import socket
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import psycopg2

TABLE = "CREATE TABLE IF NOT EXISTS notes (id serial PRIMARY KEY, text varchar NOT NULL)"
lock = threading.Lock()
connection = None


def query(statement, values=()):
    """Returns the rows of a statement; connects first where there is no connection, or it is broken."""
    global connection
    with lock:
        for attempt in (1, 2):
            try:
                if connection is None:
                    connection = psycopg2.connect(connect_timeout=5)
                    connection.autocommit = True
                    # Two that create a table at once may both find it missing.
                    with connection.cursor() as cursor:
                        cursor.execute("SELECT pg_advisory_lock(1)")
                        cursor.execute(TABLE)
                        cursor.execute("SELECT pg_advisory_unlock(1)")
                with connection.cursor() as cursor:
                    cursor.execute(statement, values)
                    return cursor.fetchall()
            except (psycopg2.OperationalError, psycopg2.InterfaceError):
                connection = None
                if attempt == 2:
                    raise


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        path = self.path.partition("?")[0]
        if path == "/about":
            about = {"pod": socket.gethostname(), "version": os.environ["IMAGE_VERSION"]}
            self.answer(200, {**about, "greeting": os.environ.get("GREETING", "")})
        elif path == "/ready":
            self.run(lambda: query("SELECT 1"))
        elif path == "/notes":
            self.run(lambda: [text for (text,) in query("SELECT text FROM notes ORDER BY id")])
        else:
            self.answer(404, {"error": "not found"})

    def do_POST(self):
        text = self.rfile.read(int(self.headers["content-length"])).decode()
        self.run(lambda: query("INSERT INTO notes (text) VALUES (%s) RETURNING id", (text,))[0][0])

    def run(self, work):
        try:
            self.answer(200, work())
        except psycopg2.Error as error:
            print(f"query failed: {error}", file=sys.stderr)
            self.answer(503, {"error": str(error)})

    def answer(self, status, value):
        body = (json.dumps(value) + "\n").encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_request(self, code="-", size="-"):
        if self.path != "/ready":
            super().log_request(code, size)


signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
ThreadingHTTPServer(("", 8000), Handler).serve_forever()
