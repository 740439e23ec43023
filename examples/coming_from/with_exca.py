import exca
import pydantic
import train


class Train(pydantic.BaseModel):
    lr: float
    seed: int
    infra: exca.TaskInfra = exca.TaskInfra(folder="cache", cluster="local", version="1")

    @infra.apply
    def accuracy(self) -> float:
        return train.accuracy(self.lr, self.seed)


if __name__ == "__main__":
    first = Train(lr=0.01, seed=0)
    with first.infra.job_array() as tasks:
        tasks += [first.infra.clone_obj(lr=lr, seed=seed) for lr in (0.01, 0.1) for seed in range(20)]
    print([(task.lr, task.seed, task.accuracy()) for task in tasks])
