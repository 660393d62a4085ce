"""Redaction: secrets are taken out of what is logged, sent, shown and kept.

One list says what looks like a secret (:mod:`~isthmus.core.redaction.forms`), and one registry
which texts are secret now (:mod:`~isthmus.core.redaction.live_secrets`). There is one function for
each kind of text, and each has its users:

- ``lines.redact_log``, an operator's log: the log filter of :mod:`isthmus.auth.redaction`, words of
  other servers in errors (``auth``), failures that the host's supervisor and ``isthmus config``
  show.
- ``lines.redact_command``, the command line of a server: ``transports.command``, the supervisor.
- ``messages.Redact``, log messages that travel to a client: ``server`` (``Server(redact=…)``), which
  also asks ``is_secret_name`` before it repeats an argument.
- ``texts.redact_text``, any text that is shown to a user or kept: the supervisor and the audit log.
- ``values.Redactor``, arguments and results: the audit log, the pipeline's obligations, contexts.

The names of variables and members in configuration files are judged by ``forms.may_name_secret``,
for ``host.config``.

A digest in place of a body is the audit log's own, and so are the words by which the host knows a
form that asks for a secret.
"""
