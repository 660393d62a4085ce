"""Native step of the migration: simple modules on the façades become native isthmus (``--native``).

``groups`` connects the modules of a project, ``module_judge`` reads one and either makes its edits or says
which line keeps it at the façade, ``accepted`` lists what may differ afterwards. ADR 0125 says why.
"""
