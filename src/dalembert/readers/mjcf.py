from dalembert.readers.draft import Draft
def read_mjcf(root, folders):
    raise NotImplementedError
