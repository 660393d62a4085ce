"""The approver: questions, servers, events and grants on a full screen."""
