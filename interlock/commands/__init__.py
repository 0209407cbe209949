"""The sub-commands, one a module. A module imports its package inside its functions, so that help stays quick."""
